"""Summaries and comparisons of settings: hand-computed cases."""

import math
from types import SimpleNamespace

import pytest

from dawnbench_tf.studies import findings, outcomes, summaries
from dawnbench_tf.studies.grid import Factor, Level
from dawnbench_tf.studies.summaries import Setting
from tests.studies import samples


def setting(labels, *seconds, **facts):
    ends = [(s, outcomes.REACHED) if s < math.inf else (30.0, outcomes.MISSED) for s in seconds]
    runs = [samples.outcome(labels, seed, *end, **facts) for seed, end in enumerate(ends)]
    return Setting(labels, runs)


def test_a_summary_is_what_a_hand_makes_of_it():
    slow = setting(("32",), 10.0, 12.0, 14.0, 11.0, 13.0, costPerHour=3.0)
    fast = setting(("64",), 5.0, 6.0, math.inf, 5.5, 7.0, examplesPerSecond=2000.0)
    first, second = summaries.summarize([slow, fast], 98.0)
    assert (first.reached, first.runs, first.median_seconds, first.mean_seconds) == (5, 5, 12, 12)
    assert first.range_seconds == (10, 14) and first.middle_seconds == (12, 12)
    assert first.variation == pytest.approx(math.sqrt(2.5) / 12)
    assert first.usd == pytest.approx(3 * 12 / 3600)
    assert first.speed_up is None and first.epochs == 2 and first.best_mean == 99
    assert (second.reached, second.median_seconds, second.speed_up) == (4, 6, 2)
    assert second.faster == pytest.approx(20 / 25)
    assert second.ended == {"reached": 4, "did not converge": 1}
    assert second.examples_per_second == 2000


def test_a_miss_is_in_the_share_and_a_crash_is_censored():
    runs = setting(("a",), 10.0, math.inf).outcomes
    runs.append(samples.outcome(("a",), 2, 7.0, outcomes.CRASHED))
    runs.append(runs[-1]._replace(rows=[]))  # before its first evaluation
    times = Setting(("a",), runs).times(98.0)
    assert times.seconds.tolist() == [10, math.inf, 7, 0]
    assert times.censored.tolist() == [False, False, True, True]
    (row,) = summaries.summarize([Setting(("a",), runs)], 98.0)
    assert (row.reached, row.finished, row.runs) == (1, 2, 4)


def test_a_run_that_was_trained_for_more_has_reached_what_it_passed():
    beyond = samples.outcome(goal=100.0)._replace(status=outcomes.MISSED)
    short = samples.outcome(status=outcomes.MISSED)
    assert summaries.status_at(beyond, 98.0) == outcomes.REACHED
    assert summaries.status_at(beyond, 99.5) == summaries.status_at(short, 98.0) == outcomes.MISSED
    settings = [Setting(("a",), [beyond, short])]
    assert summaries.misses(settings, 98.0) == [("a", short)]


FACTORS = tuple(Factor(name, (Level("-", {}), Level(name, {"epochs": 1}))) for name in "ab")


@pytest.mark.parametrize(("both", "whole"), [(2.5, 4.0), (math.inf, 0.0)])
def test_speed_ups_are_multiplied_and_held_against_the_whole(both, whole):
    study = samples.study(factors=FACTORS)
    times = {("-", "-"): 10.0, ("a", "-"): 5.0, ("-", "b"): 4.0, ("a", "b"): both}
    settings = [setting(labels, seconds) for labels, seconds in times.items()]
    compared = summaries.composition(study, settings, 98.0)
    assert compared == ({"a": 2, "b": 2.5}, whole, None)  # no interval, of one run each
    several = [Setting(s.labels, s.outcomes * 5) for s in settings]
    low, high = summaries.composition(study, several, 98.0)[-1]
    assert low == high == whole / 5  # runs that are alike have no spread
    assert summaries.composition(study, settings[:3], 98.0) is None
    assert summaries.composition(samples.study(), settings, 98.0) is None


def test_efficiency_is_throughput_over_that_of_so_many_devices():
    one = setting(("1",), 10.0)
    two = setting(("2",), 8.0, examplesPerSecond=1500.0)
    mirrored = {"strategy": "mirrored", "logical_cpus": 2}
    two = two._replace(outcomes=[o._replace(settings=mirrored) for o in two.outcomes])
    first, second = summaries.summarize([one, two], 98.0)
    assert (first.devices, second.devices) == (1, 2)
    assert summaries.efficiency(second, first) == 0.75
    workers = {"strategy": "multi_worker_mirrored", "num_gpus": 4}  # of each worker
    several = two._replace(outcomes=[o._replace(settings=workers) for o in two.outcomes])
    assert several.devices is None
    second.devices = None
    assert summaries.efficiency(second, first) is None


def test_batch_sizes_are_no_devices_and_numbers_have_their_factor_s_name():
    settings = [Setting((n,), setting((n,), 9.0).outcomes, ("batch size",)) for n in ("64", "128")]
    rows = summaries.summarize(settings, 98.0)
    assert [row.devices for row in rows] == [1, 1]
    assert [row.setting for row in rows] == ["batch size 64", "batch size 128"]


def test_a_main_effect_is_over_pairs_that_differ_in_one_level():
    study = samples.study(factors=FACTORS)
    times = {("-", "-"): 12.0, ("a", "-"): 6.0, ("-", "b"): 4.0, ("a", "b"): 1.0}
    settings = [setting(labels, seconds) for labels, seconds in times.items()]
    effects = summaries.main_effects(study, settings, 98.0)
    assert effects == {("a", "a"): [2.0, 4.0], ("b", "b"): [3.0, 6.0]}
    settings[3] = setting(("a", "b"), math.inf)
    assert summaries.main_effects(study, settings, 98.0)["a", "a"] == [2.0, 0.0]
    settings[0] = setting(("-", "-"), math.inf)
    assert summaries.main_effects(study, settings, 98.0)["b", "b"] == [math.inf, 0.0]
    assert summaries.main_effects(samples.study(), settings[:2], 98.0) == {}


def test_held_out_scores_belong_to_the_last_row_and_thresholds_to_the_study_or_the_lowest_goal():
    runs = setting(("a",), 1.0, 2.0, heldOut={samples.METRIC: 97.5})
    assert summaries.held_out_pairs(runs) == [(99, 97.5), (99, 97.5)]
    assert summaries.held_out_pairs(setting(("a",), 1.0)) == []
    runs = [setting(("a",), 1.0), Setting(("b",), [samples.outcome(("b",), goal=100.0)])]
    assert summaries.choose_thresholds(samples.study(), runs) == (98.0,)
    assert summaries.choose_thresholds(samples.study(thresholds=(95, 98)), runs) == (95, 98)


def test_a_run_that_ended_at_a_lower_threshold_is_censored_at_a_higher_one():
    lower = samples.outcome(goal=50.0)
    lower = lower._replace(rows=lower.rows[:1] + [{**lower.rows[1], samples.METRIC: 60.0}])
    (miss,) = summaries.misses([Setting(("a",), [lower])], 98.0)
    assert miss[1].status == "ended at 50"
    times = Setting(("a",), [lower]).times(98.0)
    assert times.seconds.tolist() == [10.0] and times.censored.all()
    # The epochs of crashed runs are censored as their times are.
    runs = setting(("a",), 10.0, 12.0, 12.0).outcomes
    runs += [samples.outcome(("a",), n, 7.0, outcomes.CRASHED) for n in (3, 4)]
    runs[3:] = [run._replace(rows=run.rows[:1]) for run in runs[3:]]
    (row,) = summaries.summarize([Setting(("a",), runs)], 98.0)
    assert (row.median_seconds, row.epochs) == (12.0, 2.0)


def test_a_run_that_reached_the_threshold_and_then_crashed_reached_it():
    crashed = samples.outcome()._replace(status=outcomes.CRASHED, reason="ended by SIGSEGV")
    assert summaries.status_at(crashed, 98.0) == outcomes.REACHED
    assert summaries.status_at(crashed, 99.9) == outcomes.CRASHED
    runs = [setting(("a",), 10.0)._replace(outcomes=[samples.outcome(), crashed])]
    line = findings._describe_runs(SimpleNamespace(settings=runs, thresholds=[98.0], planned=2))
    assert line == "2 runs in one setting: 2 reached; 1 of those that reached it crashed later."
