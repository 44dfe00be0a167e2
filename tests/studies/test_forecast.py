"""Estimated time and cost of a study: hand-computed cases."""

import pytest

from dawnbench_tf import recipes
from dawnbench_tf.studies import forecast, grid
from tests.studies import samples

EACH = recipes.get("digits/resnet8").evidence[-1].seconds  # the newest measurement
PLANNED = grid.plan(samples.study(factors=(), trials=4, settings={"cost_per_hour": 36.0}))


def test_before_a_run_has_ended_each_takes_what_the_evidence_says():
    assert forecast.estimate_seconds(PLANNED, {}) == pytest.approx(4 * EACH)
    assert forecast.estimate_seconds(PLANNED, {}, jobs=2) == pytest.approx(2 * EACH)
    assert forecast.estimate_usd(PLANNED, {}) == pytest.approx(4 * EACH * 36 / 3600)


def test_then_each_takes_as_long_as_the_mean_of_those():
    ended = {run.name: samples.outcome(seconds=s) for run, s in zip(PLANNED, (5, 10), strict=False)}
    # Their processes took twice the clock: 10 and 20 s.
    assert forecast.estimate_seconds(PLANNED, ended) == pytest.approx(30)
    assert forecast.estimate_seconds(PLANNED, ended, begun=[10.0]) == pytest.approx(20)
    assert forecast.describe(PLANNED, ended, 1) == (
        "4 runs, 2 finished before; about 0:00:30, $0.30 left"
    )


def test_what_nothing_is_known_of_has_no_forecast():
    planned = grid.plan(samples.study(recipe="cifar10/resnet20_tf", factors=()))
    assert forecast.estimate_seconds(planned, {}) is None
    assert forecast.describe(planned, {}, 1) == "3 runs, 0 finished before"


def test_a_run_that_takes_too_long_takes_nothing_from_those_that_wait():
    ended = {PLANNED[0].name: samples.outcome(seconds=50)}  # 100 s of its process
    assert forecast.estimate_seconds(PLANNED, ended, begun=[900.0]) == pytest.approx(200)
