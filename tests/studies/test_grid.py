"""The planned runs of a study."""

import json
import sys

import pytest

from dawnbench_tf import files, recipes
from dawnbench_tf.refusals import Refusal
from dawnbench_tf.studies import grid, rows, store
from dawnbench_tf.studies.grid import Factor, Level, Study
from tests.studies import samples


def test_every_study_of_the_paper_can_be_planned_and_written():
    declared = [(scale, study) for scale in rows.SCALES for study in rows.STUDIES[scale].values()]
    for scale, each in declared:
        study = grid.with_changes(each, "", 0, {})
        planned = grid.plan(study)
        assert len({run.name for run in planned}) == len(planned) >= study.trials, study.name
        again = Study.from_values(study.values())
        assert again.values() == study.values() and grid.plan(again) == planned, study.name
        tasks = {run.recipe.task for run in planned}
        assert tasks == ({"digits"} if scale == "small" else {"cifar10"}), study.name


def test_the_paper_s_batch_sizes_and_rates_are_those_of_figure_1():
    planned = grid.plan(grid.with_changes(rows.STUDIES["paper"]["batch_size"], "", 0, {}))
    sizes = [run.recipe.batch_size for run in planned if run.seed == 0]
    assert sizes == [32, 64, 128, 256, 512, 1024, 2048]
    recipe, optimizer = planned[0].recipe, planned[0].recipe.optimizer
    assert (optimizer.learning_rate, optimizer.scale_learning_rate_from) == (0.1, 128)
    assert recipe.model == "resnet56_v1_proj" and recipe.epochs == 185


def test_the_paper_s_factors_are_those_of_figure_3():
    study = grid.with_changes(rows.STUDIES["paper"]["factors"], "", 0, {})
    planned = {run.labels: run for run in grid.plan(study)}
    assert len(planned) == 8
    whole = planned["SD", "4 GPUs", "batch x4"]
    assert whole.recipe.batch_size == 512 and whole.recipe.network.final_survival == 0.5
    assert {"--strategy=mirrored", "--num_gpus=4"} <= set(whole.flags)
    optimizer = whole.recipe.optimizer
    assert (optimizer.learning_rate, optimizer.scale_learning_rate_from) == (0.1, 0)


def test_a_grid_is_all_combinations_trial_by_trial():
    layout = Factor("b", (Level("-", {}), Level("NCHW", {"data_format": "NCHW"})))
    planned = grid.plan(samples.study(factors=(*samples.study().factors, layout), trials=2))
    labels = [" ".join(run.labels) for run in planned[:4]]
    assert labels == ["32 -", "32 NCHW", "64 -", "64 NCHW"]
    assert [run.seed for run in planned] == [0] * 4 + [1] * 4
    assert planned[1].name == "32_NCHW/seed-0"
    assert planned[1].flags == (
        "--recipe=digits/resnet8",
        "--batch_size=32",
        "--data_format=NCHW",
        "--seed=0",
        "--nojit_compile",  # in all settings
    )


def test_a_price_is_of_each_device_where_one_is_given():
    scaling = rows.STUDIES["small"]["scaling"]
    free = grid.with_changes(scaling, "", 0, {})
    assert not any("cost" in flag for run in grid.plan(free) for flag in run.flags)
    priced = grid.with_changes(scaling, "", 1, {"cost_per_hour": 0.5})
    one, two = grid.plan(priced)
    assert "--cost_per_hour=0.5" in one.flags and "--cost_per_hour=1.0" in two.flags


def test_a_recipe_of_another_task_has_thresholds_of_its_own():
    depth = rows.STUDIES["small"]["factors"]
    changed = grid.with_changes(depth, "cifar10/resnet20_tf", 0, {"data_dir": "DIR"})
    assert changed.thresholds == () and "model" not in changed.settings
    assert grid.plan(changed)[0].recipe.goal == recipes.get("cifar10/resnet20_tf").goal
    assert grid.with_changes(depth, "", 0, {"threshold": 90.0}).thresholds == (90.0,)


def test_levels_of_one_s_own_take_the_place_of_the_study_s():
    study = grid.with_levels(rows.STUDIES["small"]["batch_size"], [8, 64])
    study = grid.with_changes(study, "", 0, {})
    assert [run.recipe.batch_size for run in grid.plan(study)][:2] == [8, 64]
    with pytest.raises(Refusal, match="--levels=8: factors does not vary one field alone"):
        grid.with_levels(rows.STUDIES["small"]["factors"], [8])


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"bach_size": 3}, "bach_size=3: no field of a recipe or a run; did you mean batch_size?"),
        ({"epochs": "2 * epochs"}, "--epochs='2 \\* epochs': should be a number"),
        ({"strategy": "mirrord"}, "--strategy=mirrord: should be one of off"),
        ({"model": "resnet8"}, "--model=resnet8: .*did you mean"),
    ],
)
def test_what_is_no_setting_is_refused_before_anything_runs(settings, words):
    with pytest.raises(Refusal, match=words):
        grid.plan(samples.study(settings=settings, factors=()))


def test_settings_whose_folders_would_be_one_are_refused():
    factor = Factor("a", (Level("x y", {"epochs": 1}), Level("x-y", {"epochs": 2})))
    with pytest.raises(Refusal, match="2 of its settings would be x-y; name levels apart"):
        grid.plan(samples.study(factors=(factor,)))
    cyrillic = Factor("a", (Level("да_", {"epochs": 1}), Level("нет", {"epochs": 2})))
    planned = grid.plan(samples.study(trials=1, factors=(cyrillic,)))
    assert [run.name for run in planned] == ["да/seed-0", "нет/seed-0"]
    long = Factor("a", (Level("й" * 100, {"epochs": 1}),))  # 200 bytes of a name's 255
    with pytest.raises(Refusal, match="200 bytes at most"):
        grid.plan(samples.study(factors=(long, long._replace(name="b"))))


def test_what_a_study_varies_is_not_replaced():
    with pytest.raises(Refusal, match="--batch_size=3: is what sample varies"):
        grid.with_changes(samples.study(), "", 0, {"batch_size": 3})


def test_levels_computed_from_a_setting_follow_the_user_s():
    study = grid.with_changes(rows.STUDIES["small"]["batch_size"], "", 1, {"batch_size": 32})
    assert [run.recipe.batch_size for run in grid.plan(study)][:3] == [8, 16, 32]


def test_lists_of_a_study_s_settings_are_planned_and_read_back():
    """JSON and TOML have lists; a recipe has tuples."""
    settings = {"schedule": "linear", "schedule_epochs": [0, 2, 30], "schedule_factors": (0, 1, 0)}
    study = samples.study(settings=settings)
    planned, values = grid.plan(study), study.values()
    assert planned[0].recipe.schedule.epochs == (0, 2, 30)
    assert grid.plan(Study.from_values(values)) == planned
    assert json.loads(json.dumps(values)) == values  # as a folder's are compared


def test_a_recipe_file_that_changes_is_another_study_s(tmp_path):
    path = tmp_path / "my.toml"
    path.write_text('base = "digits/resnet8"\n[settings]\nbatch_size = 96\n')
    study = samples.study(recipe=str(path), factors=(), trials=1).with_modules()
    with store.claimed(tmp_path / "a", study):
        path.write_text('base = "digits/resnet8"\n[settings]\nbatch_size = 32\n')
    with pytest.raises(Refusal, match=r"holds study sample with .*batch_size=96, not 32; name ano"):
        with store.claimed(tmp_path / "a", study.with_modules()):
            pass
    path.unlink()
    assert [run.recipe.batch_size for run in grid.plan(store.read(tmp_path / "a"))] == [96]
    earlier = {**study.values(), "modules": {}}  # of a release that recorded no files
    files.write_json(tmp_path / "a" / store.STUDY, earlier)
    with store.claimed(tmp_path / "a", study) as goes_on:
        assert goes_on == study


def test_a_recipe_of_a_module_is_recorded_and_never_imported_to_be_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = "from dawnbench_tf import recipes\nX = recipes.get('digits/resnet8', batch_size=96)\n"
    (tmp_path / "of_mine.py").write_text(code)
    study = Study("s", "q", "of_mine:X", 2).with_modules()
    sys.modules.pop("of_mine")
    (tmp_path / "of_mine.py").write_text("open('ran', 'w')")
    read = Study.from_values(study.values())
    assert [run.recipe.batch_size for run in grid.plan(read)] == [96, 96]
    earlier = {key: value for key, value in read.values().items() if key != "modules"}
    line = "--recipe=of_mine:X: is of a module, and study.json does not"
    with pytest.raises(Refusal, match=line):
        grid.plan(Study.from_values(earlier))
    assert not (tmp_path / "ran").exists()


def test_a_run_of_the_study_of_batch_sizes_has_one_where_the_recipe_s_grows():
    study = rows.STUDIES["small"]["batch_size"]
    planned = grid.plan(grid.with_changes(study, "cifar10/cpu94", 1, {}))
    sizes = [run.recipe.batch_sizes for run in planned]
    assert sizes == [(384,), (768,), (1536,), (3072,), (6144,), (12_288,), (24_576,)]
