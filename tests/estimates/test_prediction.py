"""Estimates from samples: hand-computed clocks, evidence with misses, intervals."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from dawnbench_tf import recipes
from dawnbench_tf.estimates.prediction import Estimate, clock_seconds, predict, wall_seconds
from dawnbench_tf.estimates.sample import Phase, Sample
from dawnbench_tf.recipe.evidence import Measured
from tests.estimates.samples import sample

DIGITS = recipes.get("digits/resnet8")


def with_epochs(*epochs, runs):
    row = Measured("2026-01-01", "here", runs, len(epochs), 99.0, 0.1, 1.0, "train", epochs)
    return replace(DIGITS, evidence=(row,))


def test_the_clock_is_the_start_and_the_steps_that_compiling_has_not_taken():
    # 1 + 2 + 3 + 0.5 s, of which the first call's 10 steps are 1 s; 5 epochs of 20 steps of 0.1 s.
    assert clock_seconds(sample(), 5) == pytest.approx(6.5 - 1.0 + 10.0)
    assert clock_seconds(sample(generated=True), 5) == pytest.approx(4.5 - 1.0 + 10.0)
    assert clock_seconds(sample(), math.inf) == math.inf


def test_evaluations_before_the_first_one_take_no_time():
    # Of 5 epochs the fourth and the fifth are evaluated, 2 s each; 4 s of imports and 1 s are once.
    late = wall_seconds(replace(DIGITS, eval_from=4), sample(), 5)
    assert late == pytest.approx(clock_seconds(sample(), 5) + 4 + 1 + 2 * 2)
    assert wall_seconds(DIGITS, sample(), 5) == pytest.approx(late + 3 * 2)


def test_each_size_of_images_has_its_own_epochs():
    small, large = ([(1.0, 10)], [(4.0, 10)])
    phases = [Phase(64, 64, 20, 0, 10.0, small, None), Phase(96, 64, 20, 10, 16.0, large, None)]
    sized = sample(phases=phases)
    assert clock_seconds(sized, 10) == pytest.approx(5.5 + 20.0)
    assert clock_seconds(sized, 12) == pytest.approx(5.5 + 20.0 + 2 * 20 * 0.4)
    row = predict(DIGITS, sized)
    assert row.side_ms == pytest.approx([100, 400]) and row.share_of_peak is None
    assert row.step_ms == pytest.approx((10 * 100 + 6 * 400) / 16)


def test_each_batch_size_has_its_own_steps():
    first, second = ([(1.0, 10)], [(3.0, 10)])  # 100 and 300 ms a step
    phases = [Phase(32, 64, 20, 0, 10.0, first, 1e9), Phase(32, 256, 5, 10, 30.0, second, 1e9)]
    changing = sample(phases=phases)
    assert clock_seconds(changing, 12) == pytest.approx(5.5 + 10 * 20 * 0.1 + 2 * 5 * 0.3)
    row = predict(DIGITS, changing)
    seconds = (10 * 2.0 + 20 * 1.5) / 30  # an epoch's
    assert row.examples_per_second == pytest.approx(20 * 64 / seconds)
    assert row.share_of_peak == pytest.approx(20 * 64 * 1e9 / seconds / 1e12)


def test_hours_and_dollars_are_those_of_the_median_run():
    row = predict(with_epochs(4, 5, 9, runs=3), sample(), cost_per_hour=36.0)
    assert row.hours * 3600 == pytest.approx(15.5) and row.usd == pytest.approx(0.155)
    assert row.epochs == 5 and row.epochs_range == [4, 9] and (row.reached, row.runs) == (3, 3)
    # Without noise in the steps, the interval's ends are the fastest and the slowest run.
    assert [3600 * bound for bound in row.hours_interval] == pytest.approx([13.5, 23.5])
    assert row.usd_interval == pytest.approx([0.135, 0.235])
    assert row.wall_hours * 3600 == pytest.approx(15.5 + 4 + 1 + 5 * 2)
    assert row.share_of_peak == pytest.approx(1e9 * 64 / 0.1 / 1e12)


def test_runs_that_missed_are_counted_and_may_make_it_never():
    one = predict(with_epochs(4, 4, 4, runs=4), sample())
    assert one.hours < math.inf and one.hours_interval[1] == math.inf
    most = predict(with_epochs(4, runs=3), sample())
    assert most.hours == math.inf and most.reached == 1 and most.facts()["hours"] is None
    assert most.hours_all * 3600 == pytest.approx(5.5 + 30 * 2)


@pytest.mark.parametrize("changes", [{"threshold": 90.0}, {"epochs": 40}, {"model": "resnet20_tf"}])
def test_evidence_is_not_of_another_threshold_model_or_number_of_epochs(changes):
    recipe = replace(recipes.changed(with_epochs(4, runs=1), **changes))
    row = predict(recipe, sample())
    assert row.at_most and row.epochs == recipe.epochs and not row.runs


def test_the_interval_of_steps_is_that_of_their_mean():
    laps = [(float(seconds), 10) for seconds in np.random.default_rng(1).normal(1.0, 0.2, 50)]
    row = predict(with_epochs(20, runs=1), sample(laps))
    low, high = (3600 * bound for bound in row.hours_interval)
    # 390 steps; standard error of the mean of 50 calls of 10 steps.
    error = 39 * np.std([seconds for seconds, _ in laps]) / math.sqrt(50)
    assert high - low == pytest.approx(2 * 1.96 * error, rel=0.1)


def test_samples_and_estimates_go_through_json():
    facts = json.loads(json.dumps(sample().facts()))
    assert Sample.from_facts(facts) == sample()
    row = predict(with_epochs(4, 5, runs=2), sample(), 1.0)
    assert Estimate.from_facts(json.loads(json.dumps(row.facts()))) == row
    with pytest.raises(ValueError, match="'hours' is missing"):
        Estimate.from_facts({k: v for k, v in row.facts().items() if k != "hours"})
