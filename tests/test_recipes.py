"""Recipes: ranges of settings, names, published evidence, settings of the sources."""

import csv
import hashlib
import itertools
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dawnbench_tf import recipes
from dawnbench_tf.data import dataset
from dawnbench_tf.recipe import Questions, Recipe
from dawnbench_tf.recipe.evidence import Published
from dawnbench_tf.recipes import own
from dawnbench_tf.recipes.__main__ import Options, main
from dawnbench_tf.refusals import Refusal
from dawnbench_tf.settings import all_settings
from dawnbench_tf.tasks import TASKS
from dawnbench_tf.training import schedules
from tests.stated_settings import RATES, STATED

PUBLISHED = Path(__file__).parent / "fixtures/published"
LATER = {"later_batch_sizes": (64, 32), "batch_size_epochs": (2, 4)}
PROXY = {"proxy": "resnet8_v1_pad"}


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"batch_size": 0}, "--batch_size=0: should be at least 1"),
        ({"batch_size": 1298}, "--batch_size=1298: should be at most digits's 1297 examples"),
        ({"epochs": -1}, "--epochs=-1: should be over 0"),
        ({"learning_rate": float("nan")}, "--learning_rate=nan: should be a finite number"),
        ({"threshold": 100.5}, "--threshold=100.5: top1Accuracy should be over 0, at most 100"),
        ({"learning_rate": 0.0}, "--learning_rate=0.0: should be over 0"),
        ({"schedule_factors": (0, 0, 0)}, "--schedule_factors=0,0,0: one of them should be over 0"),
        ({"threshold": 0}, "--threshold=0: top1Accuracy should be over 0, at most 100"),
        ({"optimizer": "lamb"}, "--optimizer=lamb: should be one of sgd, lars, muon, rmsprop"),
        ({"schedule_epochs": (2, 1, 3)}, "--schedule_epochs=2,1,3: should increase"),
        ({"schedule_epochs": (1,)}, "--schedule=linear: takes a factor for each of schedule_epo"),
        ({"standardize": "channel"}, "--standardize=channel: requires three numbers in"),
        ({"task": "qa_mini"}, "--task=qa_mini: has questions; digits/resnet8 trains on images"),
        ({"lookahead": True}, "--lookahead=true: requires --average"),
        ({"average_every": 5}, "--average_every=5: requires --average"),
        ({"test_views": "two"}, "--test_views=two: should be one of image, mirror, mirror_and"),
        ({"bucket_boundaries": (8,)}, "--bucket_boundaries=8: is for questions; digits has images"),
        ({"later_batch_sizes": (64,)}, "--batch_size_epochs: should be 1 epochs, one for each"),
        ({**LATER, "batch_size_epochs": (2, 2)}, "--batch_size_epochs=2,2: should increase"),
        ({**LATER, "later_batch_sizes": (64, 2000)}, "--later_batch_sizes=2000: should be at"),
        ({"image_sizes": (40,)}, "--image_sizes=40: should be at most the 32 pixels of an image"),
        ({"crop_size": 33}, "--crop_size=33: should be at most the 32 pixels of an image"),
        ({"crop_size": 24, "cutout": 25}, "--cutout=25: should be at most the 24 pixels of an im"),
        ({"image_sizes": (16, 32)}, "--image_size_epochs: should be one fewer than the 2"),
        ({"hardest": -1}, "--hardest=-1: should be at least 0"),
        ({"hardest": 8, **PROXY}, "--hardest=8: is another selection than --proxy=resnet8_v1_pad"),
        ({"proxy": "resnet8"}, "--proxy=resnet8: "),
        ({"proxy": "bidaf"}, "--proxy=bidaf: takes questions, and digits has images"),
        ({"proxy_share": 0.3}, "--proxy_share=0.3: requires --proxy"),
        ({"proxy_every": 2}, "--proxy_every=2: requires --proxy"),
        ({**PROXY, "optimizer": "adam"}, "--proxy=resnet8_v1_pad: is for --optimizer=sgd or lars"),
        ({**PROXY, "proxy_share": 0.0}, "--proxy_share=0.0: should be over 0"),
        ({"sgd_rate": 2.0}, "--sgd_rate=2.0: is for --optimizer=muon"),
        ({"optimizer": "adam", "shift_rate": 2.0}, "--shift_rate=2.0: is for --optimizer=sgd, la"),
        ({"optimizer": "muon", "kernel_norm_steps": (1,)}, "--kernel_norm_steps=1: should be 2 n"),
        ({"whitening_bias_falls": True}, "--whitening_bias_falls=true: requires --whitening_bias"),
    ],
)
def test_a_value_out_of_range_is_refused_with_its_flag(change, line):
    with pytest.raises(Refusal, match="^" + line.replace("(", r"\(")):
        recipes.get("digits/resnet8", **change)


OFF = {"flip": False, "cutout": 0, "test_views": "image", "average": 0, "schedule": "constant"}
OFF |= {"whitening_bias_epochs": 0, "proxy": "", "image_sizes": (), "later_batch_sizes": ()}


def test_one_setting_leaves_out_a_part_of_any_recipe():
    default = Recipe().values()
    needs = {name: item.metadata["needs"] for name, (_, item) in all_settings(Recipe).items()}
    images = [row for row in recipes.rows().values() if row.whole_task.inputs == "images"]
    for row, (off, value) in itertools.product(images, OFF.items()):
        if row.jpegs and off in ("cutout", "proxy"):
            continue
        changed = recipes.get(row.name, **{off: value}).values()
        left_out = [name for name in needs if needs[name].partition("=")[0] == off]
        assert left_out, off
        assert [changed[name] for name in left_out] == [default[name] for name in left_out]
    adam = recipes.get("cifar10/airbench94_muon", optimizer="adam").values()
    left_out = [name for name in needs if needs[name].startswith(("optimizer", "whitening"))]
    assert [adam[name] for name in left_out] == [default[name] for name in left_out]


def test_a_value_of_any_type_is_taken_or_refused_in_a_line():
    others = [None, True, -1, 1e308, 2**70, float("nan"), "", "\x1b[2J", "x" * 20_000, object()]
    others += [[], (), [[]], ([],), (32,), ("a",), {}, {"a": 1}]
    names = ("digits/resnet8", "qa_mini/bidaf", "imagenet/resnet50d")
    settings = [(name, key) for name in names for key in recipes.get(name).values()]
    for (name, setting), value in itertools.product(settings, others):
        if setting == "name":
            continue
        try:
            recipe = recipes.get(name, **{setting: value})
        except Refusal as refusal:
            line = str(refusal)
            assert line.isprintable() and len(line) < 600 and line.startswith("--")
            continue
        is_tuple = isinstance(recipe.values()[setting], tuple)
        assert is_tuple == isinstance(value, tuple | list), setting


def test_settings_for_images_are_refused_for_questions():
    values = {"flip": True, "drop_remainder": True, "zero_last_norm": True}
    values |= {"label_smoothing": 0.1, "auxiliary_weight": 0.4, "later_batch_sizes": (8,)}
    for name, value in {**values, "pad": 2}.items():
        images = "images of one size" if name == "pad" else "images"
        with pytest.raises(Refusal, match=f"^--{name}=.*: is for {images}; qa_mini has questions"):
            recipes.get("qa_mini/bidaf", **{name: value})


def test_a_network_that_cannot_read_the_tokens_is_refused():
    with pytest.raises(Refusal, match="^--tokenizer=glove: should be wordpiece: bert_tiny_span r"):
        recipes.get("qa_mini/bidaf", model="bert_tiny_span")
    with pytest.raises(Refusal, match="^--tokenizer=wordpiece: should not be wordpiece: bidaf re"):
        recipes.get("squad/bert_tiny", model="bidaf")


def test_late_evaluations_are_for_the_recipe_s_own_threshold():
    assert recipes.get("cifar10/airbench94_12ep", seed=1).eval_from == 10
    assert recipes.get("cifar10/airbench94_12ep", threshold=93).eval_from == 0
    assert recipes.get("cifar10/airbench94_12ep", threshold=93, eval_from=4).eval_from == 4


def test_settings_for_jpegs_and_for_images_of_one_size_exclude_each_other():
    with pytest.raises(Refusal, match="^--test_image_size=64: is for images of any size; digits"):
        recipes.get("digits/resnet8", test_image_size=64)
    with pytest.raises(Refusal, match="^--cutout=8: is for images of one size; imagenette has "):
        recipes.get("imagenette/resnet18", cutout=8)
    with pytest.raises(Refusal, match="^--color_shift=0.1: should be two shares: of brightness, "):
        recipes.get("imagenette/resnet18", color_shift=(0.1,))


HASHES = Path(__file__).parent / "fixtures/recipe_hashes.txt"


def hashes():
    """A line for each recipe: the hash of its settings that are not the default, and its name.

    The sources' numbers are in stated_settings.py; this only shows that a row was edited.
    """
    defaults = Recipe().values()
    lines = [f"{fingerprint(defaults)}  (defaults)\n"]
    starts = {item.name: item for item in vars(own).values() if isinstance(item, Recipe)}
    for name, recipe in sorted({**recipes.rows(), **starts}.items()):
        values = recipe.values().items()
        changes = {key: value for key, value in values if value != defaults.get(key, ...)}
        lines.append(f"{fingerprint(changes)}  {name}\n")
    return "".join(lines)


def fingerprint(values):
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:12]


def test_no_recipe_was_edited_by_accident():
    remedy = 'if meant: python -c "from tests.test_recipes import *; HASHES.write_text(hashes())"'
    assert hashes().splitlines() == HASHES.read_text(encoding="utf-8").splitlines(), remedy


def test_from_values_inverts_values():
    for recipe in recipes.rows().values():
        values = json.loads(json.dumps(recipe.values()))  # flat: JSON's types alone
        assert not any(isinstance(value, dict) for value in values.values())
        assert Recipe.from_values(values) == recipe == Recipe.from_values(recipe.values())
        assert Recipe.from_values({**values, "rand_augment": []}) == recipe  # of earlier runs


def test_a_setting_changes_by_its_flat_name_in_any_part():
    changes = {"batch_size": 500, "momentum": 0.5, "schedule_epochs": (0, 1, 2), "pad": 3}
    recipe = recipes.get("cifar10/airbench94", **changes)
    assert (recipe.batch_size, recipe.optimizer.momentum, recipe.data.pad) == (500, 0.5, 3)
    assert recipe.schedule.epochs == (0, 1, 2) and recipe.schedule.factors == (0.2, 1, 0.07)
    for name, near in (("lr", "learning_rate"), ("batchsize", "batch_size"), ("zzz", "")):
        hint = f"; did you mean {near}." * bool(near)
        with pytest.raises(TypeError, match=f"^{name}: no setting of a recipe{hint}$"):
            recipes.get("digits/resnet8", **{name: 1})
    with pytest.raises(TypeError, match="the name of one. Received: 5"):
        recipes.get(5)


def test_data_settings_of_another_task_are_refused():
    line = "^--recipe=digits/resnet8: digits has images of one size, not questions"
    with pytest.raises(Refusal, match=line):
        replace(recipes.get("digits/resnet8"), data=Questions())


def test_a_description_has_settings_by_part_and_evidence():
    recipe = recipes.get("digits/resnet8")
    text = recipes.description(recipe)
    assert "\noptimizer:\n  --rate_in_velocity\n  --weight_decay=0.0005\nschedule:\n" in text
    assert "average" not in text and "\n    dawnbench train --seed=N" in text
    assert max(map(len, text.splitlines())) <= 80
    assert "\naverage:\n  --average=0.0\n" in recipes.description(recipe, True)


def test_evidence_of_one_run_has_neither_median_nor_deviation():
    text = recipes.description("qa_mini/drqa")
    assert "reached in 1 of 1 run, " in text and "median" not in text and "sd" not in text


def test_a_setting_that_another_one_turns_off_is_refused_where_it_is_asked_for():
    off, three = {"pad": 0, "standardize": "image"}, (0.1, 0.2, 0.3)
    values = {"pad_mode": "reflection", "channel_mean": three, "channel_deviation": three}
    for name, value in values.items():
        with pytest.raises(Refusal, match=f"^--{name}=.*: requires --(pad|standardize=channel)$"):
            recipes.get("cifar10/airbench94", **{name: value}, **off)
    assert recipes.get("cifar10/airbench94", **off).data.pad_mode == "reflection"  # the row's own
    recipes.get("cifar10/airbench94", **off, pad_mode="zeros", channel_mean=())


def test_every_recipe_that_pages_and_commands_name_exists():
    root = Path(__file__).parents[1]
    pages = [*root.glob("*.md"), *root.glob("docs/*.md"), *root.glob("dawnbench_tf/**/*.py")]
    pattern = re.compile(rf"(?<![\w/.-])((?:{'|'.join(TASKS)})/[a-z]\w+)(?![\w/*.-])")
    names = [name for page in pages for name in pattern.findall(page.read_text("utf-8"))]
    assert len(names) > 100 and {*names} <= recipes.rows().keys()


def test_evidence_equals_the_published_files():
    items = [(row, item) for row in recipes.rows().values() for item in row.evidence]
    table = Path(recipes.__file__).with_name("evidence.tsv").read_text(encoding="utf-8")
    assert len(items) == len(table.splitlines()) - 1
    published = [(row, item) for row, item in items if isinstance(item, Published)]
    paths = {path.stem: path for path in PUBLISHED.glob("*.json")}
    kept = [pair for pair in published if Path(pair[1].entry).name in paths]
    assert len(kept) == len(paths) == 17
    for recipe, item in kept:
        path = paths[Path(item.entry).name]
        task = recipe.task_row
        with open(path.with_suffix(".tsv"), encoding="utf-8") as file:
            rows = [
                {name: float(value) for name, value in row.items()}
                for row in csv.DictReader(file, delimiter="\t")
            ]
        first = next(row for row in rows if row[task.metric] >= task.threshold)
        figures = float(item.facts["hours"]), float(item.facts["score"])
        assert figures == (first["hours"], first[task.metric])
        assert item.facts["hardware"] == json.loads(path.read_text())["hardware"]
        if task.inputs == "images":  # readers' entries count 1,000 steps as an epoch
            assert recipe.epochs == round(rows[-1]["epoch"])


def test_the_table_has_every_recipe_and_its_evidence():
    table = recipes.table()
    lines = [line for line in table.splitlines() if line[0] != " "]
    assert len(lines) == 1 + len(recipes.rows()) and max(map(len, lines)) <= 80
    cifar10 = recipes.table("cifar10")
    assert cifar10 == recipes.table("cifar10/*") and "imagenet/" not in cifar10
    assert "\ncifar10/cpu94 " in recipes.table("cifar10/cpu*")
    with pytest.raises(Refusal, match="--recipe=cifar/.*: no recipe matches; tasks: "):
        recipes.table("cifar/*")
    assert all(name in table for name in recipes.rows())
    assert "published: 94.02 after 10.0457 h, 1 K80" in table


def test_settings_of_every_benchmark_recipe_equal_the_source_s():
    rows = {name: row for name, row in recipes.rows().items() if row.task_row.benchmark}
    assert rows.keys() == STATED.keys()
    for name, row in rows.items():
        assert row.values() | STATED[name] == row.values(), name


def test_learning_rates_equal_the_source_s():
    for name, rates in RATES.items():
        recipe = recipes.get(name)
        factor = schedules.factor(recipe, [391])
        scale = recipe.batch_size / (recipe.optimizer.scale_learning_rate_from or recipe.batch_size)
        for epoch, rate in rates.items():
            scaled = recipe.optimizer.learning_rate * scale * float(factor(epoch * 391))
            assert scaled == pytest.approx(rate, abs=1e-6), (name, epoch)


@pytest.mark.parametrize(
    ("name", "rate", "decay", "warmup", "last"),
    [("cifar10/airbench94", 11.5, 0.0153, 0.23, 0.07), ("cifar10/airbench96", 9, 0.012, 0.1, 0)],
)
def test_airbench_s_rates_and_decays_equal_its_source_s(name, rate, decay, warmup, last):
    """Arguments of PyTorch's optimizer there, for the sum of the losses of 1,024 images."""
    recipe, steps = recipes.get(name), 48
    kilostep_scale = 1024 * (1 + 1 / (1 - 0.85))
    lr, wd = rate / kilostep_scale, decay * 1024 / kilostep_scale
    assert recipe.optimizer.learning_rate == pytest.approx(lr * 1024)
    assert recipe.optimizer.weight_decay == pytest.approx(wd / lr / 1024)
    factor, total = schedules.factor(recipe, [steps]), recipe.total_steps([steps])
    corner = int(warmup * total)  # the source rounds it down to a step
    for step in (0, 1, 30, corner - 1, corner, corner + 1, 300, total - 1):
        if step < corner:
            expected = 0.2 + 0.8 * step / corner
        else:
            expected = 1 + (last - 1) * (step - corner) / (total - corner)
        assert float(factor(step)) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("name", "steps", "knots", "values"),
    [
        ("cifar10/resnet9_24ep", 97, (0, 5, 24), (0, 0.4, 0)),
        ("cifar10/resnet9_10ep", 97, (0, 2, 8), (0, 1, 0.1)),
        ("cifar10/baidunet9", 97, (0, 5, 24), (0, 0.4, 0.001)),
        ("cifar10/resnet9_apple", 25, (0, 3.6, 16), (0, 1.5, 0.15)),
        ("cifar10/resnet9_mish", 25, (0, 2.8, 12), (0, 1.5, 0.15)),
    ],
)
def test_page_s_schedule_is_read_one_step_ahead(name, steps, knots, values):
    """His optimizers count a step before they read the piecewise linear schedule.

    Apple's epochs have 24 steps, whose corner would be between two steps.
    """
    recipe = recipes.get(name)
    recipe = replace(recipe, schedule=_read_ahead(recipe.schedule, knots, steps))
    factor = schedules.factor(recipe, [steps])
    for step in {0, 1, 100, *(int(knot * steps) + i for knot in knots[1:] for i in (-2, -1, 0, 1))}:
        if step < recipe.epochs * steps:
            expected = np.interp((step + 1) / steps, knots, values)
            rate = recipe.optimizer.learning_rate * float(factor(step))
            assert rate == pytest.approx(expected, abs=1e-6), step


def _read_ahead(schedule, knots, steps):
    """Returns a schedule whose corners were made for another number of steps, made for this one."""
    own = 1 / (knots[1] - schedule.epochs[1])
    if round(own) == steps:
        return schedule
    epochs = (0, *(knot - 1 / steps for knot in knots[1:]))
    return replace(schedule, epochs=epochs, factors=(1 / steps / knots[1], *schedule.factors[1:]))


def test_two_points_on_one_step_make_a_jump():
    for epochs, factors, expected in (
        ((0, 0.05, 1), (0.2, 1, 0), {0: 1, 5: 0.5, 10: 0}),
        ((0, 0.5, 0.51, 1), (1, 1, 0.1, 0), {4: 1, 5: 0.1, 6: 0.08, 10: 0}),
    ):
        changes = {"epochs": 1, "schedule_epochs": epochs, "schedule_factors": factors}
        factor = schedules.factor(recipes.get("digits/resnet8", **changes), [10])
        assert {step: round(float(factor(step)), 6) for step in expected} == expected


HEAD = {"auxiliary_weight": 0.4}


@pytest.mark.parametrize(
    ("name", "change", "line"),
    [
        ("digits/resnet8", {"zero_last_norm": True}, "resnet8_v1_pad has none; ResNets for Im"),
        ("digits/resnet8", HEAD, "resnet8_v1_pad has none; AmoebaNets have"),
        ("digits/resnet8", {"model": "amoebanet_d", "auxiliary_weight": 0.4}, "sees images of 80"),
        ("imagenet/resnet50d", {"image_sizes": (16,)}, "resnet50d sees images of 32 pixels"),
        ("imagenet/amoebanet_d", {"test_image_size": 64}, "amoebanet_d sees images of 80 pixels"),
        ("imagenet/amoebanet_d", HEAD | {"rectangular_test": True}, "the head sees images of one"),
    ],
)
def test_settings_that_a_network_does_not_support_are_refused(name, change, line):
    recipe, flag = recipes.get(name, **change), next(iter(change))
    with pytest.raises(Refusal, match=f"^--{flag}=[^ ]*: {line}"):
        dataset.from_splits(recipe, None).network()


def test_the_command_prints_a_recipe_s_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    main(Options(toml=True), ["digits/resnet8"])
    (tmp_path / "resnet8.toml").write_text(capsys.readouterr().out)
    main(Options(), ["resnet8.toml"])
    assert capsys.readouterr().out == recipes.description("digits/resnet8") + "\n"
    with pytest.raises(Refusal, match="^--toml=true: should follow the name of one recipe, as dig"):
        main(Options(toml=True), [])
    with pytest.raises(Refusal, match="^--toml=true: own:MINE is of a module; a file is based on"):
        main(Options(toml=True), ["own:MINE"])
