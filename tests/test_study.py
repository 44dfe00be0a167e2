"""The command `study`, with real command lines."""

import csv
import io
import json
from dataclasses import replace

import pytest

from dawnbench_tf import study, terminal
from dawnbench_tf.recipe.options import Credits, RunOptions
from dawnbench_tf.refusals import Refusal
from dawnbench_tf.studies import grid, outcomes, plans, store
from tests.studies import samples

STUDY = ("-m", "dawnbench_tf.study")


def test_bad_input_is_refused_in_a_line_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(study.flags, "replacements", lambda settings: {})
    for arguments, values, line in (
        (["trails"], {}, "^trails: no such study; did you mean trials?"),
        (["trials"], {"trials": -1}, "^--trials=-1: should be at least 0"),
        (["batch_size"], {"levels": "0"}, "^--batch_size=0: should be at least 1"),
        (["trials"], {"recipe": "digits/resnet9"}, "^--recipe=digits/resnet9: no such recipe"),
        ([], {"levels": "3,4"}, "^name the study first: dawnbench study NAME"),
        (["trials"], {"run": RunOptions(max_steps=3)}, "^--max_steps=3: times steps and trains no"),
        (["trials"], {"launch": "none {command}"}, "none is no program on this machine's PATH"),
        (["report"], {}, "^report: should be followed by the folder of a study"),
        (["report", "x"], {"trials": 3}, "^report: takes no flags but --plot, --json"),
        ([], {"plot": "x.gif"}, "^--plot=x.gif: should end in one of .png"),
        ([], {"json": True, "csv": True}, "are two forms of a report; choose one"),
        ([], {"json": True, "dry_run": True}, "^--dry_run=true: prints the plan; --json and --csv"),
    ):
        with pytest.raises(Refusal, match=line):
            study.main(study.Options(**values), arguments)
    assert not list(tmp_path.iterdir())


def test_without_a_study_all_are_listed(cold_command):
    ended = cold_command(program=STUDY)
    assert ended.returncode == 0 and ended.stdout.count("Figure") >= 6
    assert max(map(len, ended.stdout.splitlines())) <= 80


def test_the_first_run_s_refusal_is_the_study_s(cold_command, tmp_path):
    flags = ("trials", "--recipe=cifar10/resnet20_tf", "--data_dir=none", "--noestimate")
    ended = cold_command(*flags, program=STUDY)
    assert ended.returncode == 1
    assert "dawnbench study: baseline/seed-0: --data_dir=none: does not exist" in ended.stderr
    assert not (tmp_path / "studies/trials-cifar10-resnet20_tf").exists()


def test_a_dry_run_lists_what_would_run_and_touches_nothing(cold_command, tmp_path):
    flags = ("trials", "--trials=3", "--cost_per_hour=36", "--dry_run", "--noestimate")
    ended = cold_command(*flags, program=STUDY)
    *listed, last, _, _, plan, _ = ended.stdout.splitlines()
    assert ended.returncode == 0 and len(listed) == 3 and not list(tmp_path.iterdir())
    assert listed[2].startswith("baseline/seed-2 --recipe=digits/resnet8 --cost_per_hour=36")
    assert last == "3 runs, 0 finished before"
    # The recipe's evidence: 17.7 s each on the clock; the price is of the wall time.
    assert plan.startswith("plan: 3 runs, 54 s on the clock; by the recipes' evidence")
    assert max(map(len, ended.stdout.splitlines()[3:])) <= 80  # after the commands


def test_minutes_choose_the_trials_of_a_new_study_and_one_that_goes_on_keeps_its_own(
    tmp_path, monkeypatch
):
    setting = plans.PlannedSetting("baseline", 20, 10.0, False, 9.0, 10.0, None)
    monkeypatch.setattr(plans, "make", lambda *arguments: plans.Plan([setting], ""))
    options, trials = study.Options(minutes=0.75), grid.Study("trials", "", "digits/resnet8", 20)
    chosen, plan = study._in_time(trials, options, tmp_path)
    assert chosen.trials == plan.runs == 4
    samples.write(tmp_path / "s", chosen, lambda run: samples.outcome(run.labels, run.seed))
    goes_on, plan = study._in_time(trials, study.Options(minutes=9), tmp_path / "s")
    assert goes_on == chosen and plan is None
    other, _ = study._in_time(replace(trials, trials=7), replace(options, trials=7), tmp_path / "s")
    assert other.trials == 7  # which is compared with the folder's, as without --minutes
    rates = grid.Factor("rate", (grid.Level("", {"learning_rate": 0.1}),))
    other, _ = study._in_time(replace(trials, factors=(rates,)), options, tmp_path / "s")
    assert other.factors == (rates,)  # another grid, which the folder then refuses
    monkeypatch.setattr(study.flags, "replacements", lambda settings: {})
    options = study.Options(dry_run=True, run=RunOptions(output_dir=str(tmp_path / "s")))
    with pytest.raises(Refusal, match="holds study trials with name=trials"):
        study.main(options, ["optimizer"])


def test_the_price_of_an_instance_is_the_study_s_and_an_unknown_one_refused():
    credits = Credits(instance="p3.2xlarge", hardware="mine")
    changed = study._changed_study("trials", study.Options(run=RunOptions(credits=credits)), {})
    assert changed.settings["cost_per_hour"] == 3.06 and "instance" not in changed.settings
    credits = Credits(instance="p3.2xlarg")
    with pytest.raises(Refusal, match="is not known; did you mean p3.2xlarge"):
        study._changed_study("trials", study.Options(run=RunOptions(credits=credits)), {})
    credits = Credits(instance="p3.16xlarge", hardware="8 V100")  # whose levels multiply a price
    with pytest.raises(Refusal, match="is the price of all its devices; give the --cost_per_hour"):
        study._changed_study("scaling", study.Options(run=RunOptions(credits=credits)), {})


def test_levels_of_a_flag_are_true_and_false():
    levels = [*map(study._parse_level, "true,false,1,0.5,a ".split(","))]
    assert repr(levels) == "[True, False, 1, 0.5, 'a']"


def test_a_study_of_real_runs_with_a_miss_and_a_divergence(cold_command, tmp_path, capfd):
    (tmp_path / "rates.toml").write_text(
        'recipe = "digits/resnet8"\ntrials = 1\nthresholds = [98]\n'
        "[settings]\nepochs = 1\n[factors.rate]\nmild = {learning_rate = 0.1}\n"
        'wild = {learning_rate = 1e30, schedule = "constant", schedule_epochs = [], '
        "schedule_factors = []}\n"
    )
    flags = ("--jobs=2", "--output_dir=out", "--noestimate")
    ended = cold_command("rates.toml", *flags, program=STUDY)
    assert ended.returncode == 0, ended.stderr
    assert "2 runs in 2 settings" in ended.stdout
    assert max(map(len, ended.stdout.splitlines())) <= 80
    planned = grid.plan(store.read(tmp_path / "out"))
    mild, wild = store.read_outcomes(tmp_path / "out", planned).values()
    assert mild.status == outcomes.MISSED and len(mild.rows) == 1
    assert wild.status == outcomes.DIVERGED and "the loss is" in wild.reason
    assert mild.facts["utilization"]["flopsPerExample"] == 3 * 2 * 12_239_488
    assert "training diverged" in (tmp_path / "out/report.html").read_text()
    again = cold_command("report", "out", "--csv", program=STUDY)
    rows = list(csv.DictReader(io.StringIO(again.stdout)))
    assert [row["status"] for row in rows] == [outcomes.MISSED, outcomes.DIVERGED]
    terminal.show(False)
    capfd.readouterr()
    results = study.run_study(str(tmp_path / "rates.toml"), output=tmp_path / "out")
    assert [setting.outcomes for setting in results.settings] == [[mild], [wild]]
    assert capfd.readouterr() == ("", "")


def test_a_report_has_json_and_a_picture_and_two_side_by_side(cold_command, tmp_path):
    for name, seconds in (("a", 10.0), ("b", 20.0)):

        def outcome(run, seconds=seconds):
            return samples.outcome(run.labels, run.seed, seconds + run.seed)

        samples.write(tmp_path / name, samples.study(name=name), outcome)
    ended = cold_command("report", "a", "b", "--json", "--plot=a.png", program=STUDY)
    first, second = json.loads(ended.stdout)
    assert first["study"]["name"] == "a" and len(second["runs"]) == 6
    assert (tmp_path / "a.png").stat().st_size > 10_000
    assert not list(tmp_path.glob("*/*.html"))  # a colleague's folder may be read-only
    study.write_report([tmp_path / "a", tmp_path / "b"])
    assert "a 11.0 s" in (tmp_path / "a/versus-b.html").read_text()


def test_a_recipe_s_file_can_be_studied(cold_command, tmp_path):
    (tmp_path / "my.toml").write_text('base = "digits/resnet8"\n[settings]\nepochs = 5')
    flags = ("trials", "--recipe=my.toml", "--trials=1", "--dry_run", "--noestimate")
    ended = cold_command(*flags, program=STUDY)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("baseline/seed-0 --recipe=my.toml --seed=0 --nojit_compile\n")
