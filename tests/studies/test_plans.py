"""The plan of a study: hand-computed cases, with samples in place of timed steps."""

import re
from dataclasses import replace

import pytest

from dawnbench_tf import clock, recipes
from dawnbench_tf.refusals import Refusal
from dawnbench_tf.studies import grid, plans
from dawnbench_tf.studies.grid import Factor, Level
from tests.speed_tests import speed_test
from tests.studies import samples


@pytest.fixture
def timed(monkeypatch):
    """Models whose steps were timed."""
    models = []

    def take(recipe, options, seconds):
        models.append(recipe.model)
        return speed_test()

    monkeypatch.setattr(plans.speed, "take", take)
    return models


def planned(values=("resnet8_v1_pad",), **settings):
    factor = Factor("model", tuple(Level("", {"model": model}) for model in values))
    return grid.plan(samples.study(factors=(factor,), trials=2, settings=settings))


def test_a_plan_has_runs_hours_and_dollars_of_timed_steps(timed):
    plan = plans.make(planned(cost_per_hour=36.0))
    epochs = recipes.get("digits/resnet8").evidence[-1].epochs
    mean = sum(epochs) / len(epochs)  # 10.4: 11 evaluations of 2 s
    each = 6.5 - 1 + mean * 20 * 0.1 + 4 + 1 + 11 * 2
    assert plan.runs == 2 and plan.total("seconds") == pytest.approx(2 * each)
    assert plan.total("usd") == pytest.approx(2 * each * 36 / 3600) and timed == ["resnet8_v1_pad"]
    assert plan.settings[0].clock_seconds == pytest.approx(6.5 - 1 + mean * 20 * 0.1)
    text = "plan: 2 runs, 0:01:47, $1.07 of wall time; by 20 steps timed on this machine"
    assert text in str(plan) and max(map(len, str(plan).splitlines()[:-1])) <= 80
    assert re.search(r" 27 s +54 s  0:01:47 +\$1\.07$", str(plan).splitlines()[1])  # of both runs
    cloud = plans.make(planned(instance="p3.2xlarge", hardware="1 V100"))  # 3.06 USD an hour
    assert cloud.total("usd") == pytest.approx(2 * each * 3.06 / 3600) and len(timed) == 2
    with pytest.raises(Refusal, match="--instance=p3.2xlargee: is not known"):
        plans.make(planned(instance="p3.2xlargee"))
    assert len(timed) == 2


def test_a_miss_of_the_evidence_trains_all_epochs(timed, monkeypatch):
    monkeypatch.setattr(plans.speed, "epochs_of_evidence", lambda recipe: ([10.0], 2))
    (setting,) = plans.make(planned(epochs=30)).settings
    assert setting.epochs == (10 + 30) / 2 and not setting.at_most


def test_four_networks_at_most_are_timed_and_others_take_their_evidence(timed):
    names = ("resnet8_v1_pad", "resnet8_v1_proj", "resnet20_tf", "resnet56_tf", "resnet44_v1_pad")
    plan = plans.make(planned(names))
    assert len(timed) == 4 and [row.at_most for row in plan.settings] == [False, *[True] * 4]
    assert plan.settings[1].epochs == 30 and "<=30" in str(plan)
    assert plan.settings[4].clock_seconds is None and "  ?" in str(plan)  # no network's evidence


def test_a_batch_size_takes_as_long_an_epoch(timed):
    plan = plans.make(grid.plan(samples.study()))
    small, large = plan.settings
    assert small.seconds == large.seconds and len(timed) == 1


def test_other_numbers_of_epochs_take_their_share_of_the_evidence_s_time():
    row = recipes.get("digits/resnet8").evidence[-1]
    plan = plans.make(planned(epochs=300, threshold=99.9, cost_per_hour=36.0), estimates=False)
    (setting,) = plan.settings
    assert setting.epochs == 300 and setting.at_most
    pace = row.seconds / (sum(row.epochs) / len(row.epochs))
    assert setting.clock_seconds == pytest.approx(300 * pace)
    # Imports and evaluations are in no evidence, so wall time and price are not known.
    assert plan.total("seconds") is None and plan.total("usd") is None and not setting.seconds
    time = clock.duration(2 * 300 * pace)
    assert f"plan: 2 runs, at most {time} on the clock; by the recipes' ev" in str(plan)


def test_a_busy_machine_is_named(timed, monkeypatch):
    monkeypatch.setattr(plans.os, "getloadavg", lambda: (2.34, 0.0, 0.0))
    assert "whose load was 2.3" in str(plans.make(planned()))


def test_without_timing_the_plan_is_the_evidence_s(timed, monkeypatch):
    evidence = recipes.get("digits/resnet8").evidence[-1].seconds
    for plan in (plans.make(planned(), estimates=False), plans.make(planned(), elsewhere=True)):
        assert plan.settings[0].clock_seconds == pytest.approx(evidence) and not timed
        assert "evidence" in str(plan)

    def refuse(*_):
        raise Refusal("--data_dir=none: does not exist")

    monkeypatch.setattr(plans.speed, "take", refuse)
    assert "(not timed: --data_dir=none: does not exist)" in str(plans.make(planned()))


LEFT = grid.plan(samples.study(factors=(), trials=4, settings={"cost_per_hour": 36.0}))


def test_each_run_that_is_left_takes_as_long_as_the_mean_of_those_that_ended():
    ended = {run.name: samples.outcome(seconds=s) for run, s in zip(LEFT, (5, 10), strict=False)}
    # Their processes took twice the clock: 10 and 20 s.
    assert plans.seconds_left(LEFT, ended) == pytest.approx(30)
    assert plans.seconds_left(LEFT, ended, jobs=2) == pytest.approx(15)
    assert plans.seconds_left(LEFT, ended, begun=[10.0]) == pytest.approx(20)
    assert plans.describe(LEFT, ended, 1) == "4 runs, 2 finished before; about 30 s, $0.30 left"
    assert plans.describe(LEFT, ended, 2) == "4 runs, 2 finished before; about 15 s, $0.30 left"
    assert plans.seconds_left(LEFT, {}) is None
    assert plans.describe(LEFT, {}, 1) == "4 runs, 0 finished before"
    ended = {LEFT[0].name: samples.outcome(seconds=50)}  # 100 s of its process
    # One that takes longer takes nothing from those that wait.
    assert plans.seconds_left(LEFT, ended, begun=[900.0]) == pytest.approx(200)


def plan_of(*seconds):
    numbered = enumerate(seconds)
    rows = [plans.PlannedSetting(f"s{n}", 20, 5, False, each, each, None) for n, each in numbered]
    return plans.Plan(rows, "")


SIZES = Factor("size", tuple(Level("", {"batch_size": 2**n}) for n in range(4, 8)))


FITTING = [  # seconds -> trials, what is left out; a run takes 10, 15, 20, 5 seconds
    (1000, 20, ""),
    (999, 19, "19 of 20 trials"),
    (250, 5, "5 of 20 trials"),
    (249, 7, "7 of 20 trials; left out: s1"),  # s2 is the recipe's own
    (150, 5, "5 of 20 trials; left out: s1, s3"),
    (149, 4, "4 of 20 trials; left out: s1"),
    (30, 1, "1 of 20 trials; left out: s1, s3"),
]


def test_what_fits_is_trials_first_and_then_levels_without_the_costliest():
    study = samples.study(factors=(SIZES,), trials=20)
    for seconds, trials, text in FITTING:
        chosen, _, left_out = plans.fit(study, plan_of(10, 15, 20, 5), seconds)
        kept = [level for n, level in enumerate(SIZES.levels) if f"s{n}" not in text]
        assert (chosen.trials, left_out, [*chosen.factors[0].levels]) == (trials, text, kept)


def test_fewer_than_five_trials_have_as_many_levels_as_fit():
    study = samples.study(factors=(SIZES,), trials=3)
    chosen, _, left_out = plans.fit(study, plan_of(48, 48, 48, 48), 170)
    assert chosen.trials == 1 and left_out == "1 of 3 trials; left out: s3"


def test_a_study_of_several_factors_keeps_them_and_no_time_is_refused():
    study = samples.study(factors=(*samples.study().factors, *samples.study().factors), trials=9)
    plan = plan_of(10, 10, 10, 10)
    chosen, _, left_out = plans.fit(study, plan, 100)
    assert chosen == replace(study, trials=2) and left_out == "2 of 9 trials"
    line = "--minutes leaves 39 s .* each of 4 settings takes 40 s here"
    with pytest.raises(Refusal, match=line):
        plans.fit(study, plan, 39)
    unknown = plan._replace(settings=[plan.settings[0]._replace(seconds=None)])
    with pytest.raises(Refusal, match="--minutes: the steps of s0 were not timed"):
        plans.fit(study, unknown, 100)
