"""Predictions from speed tests: hand-computed clocks, misses, coverage of intervals."""

import json
import math
import pickle
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from dawnbench_tf import estimate, recipes
from dawnbench_tf.recipes import speed
from dawnbench_tf.recipes.speed import ERROR, Estimate, Phase, predict
from tests.speed_tests import DIGITS, FIRST, measured, speed_test, with_evidence


def test_the_clock_is_the_start_and_the_steps_that_compiling_has_not_taken():
    # 1 + 2 + 3 + 0.5 s, of which the first call's 10 steps are 1 s; 5 epochs of 20 steps of 0.1 s.
    assert speed_test().clock_seconds(5) == pytest.approx(6.5 - 1.0 + 10.0)
    generated = speed_test(recipe=replace(DIGITS, synthetic="decoded"))
    assert generated.clock_seconds(5) == pytest.approx(4.5 - 1.0 + 10.0)
    assert speed_test().clock_seconds(math.inf) == math.inf


def test_all_steps_take_the_mean_of_the_calls():
    test = speed_test([(1.0, 10), (2.0, 10), (9.0, 10)])  # 30 epochs of 20 steps
    assert test.phases[0].seconds_per_step == pytest.approx(0.4)
    assert test.seconds == pytest.approx(30 * 20 * 0.4)
    assert "400 ms a step, at the median 200, 160 examples/s" in str(test)
    assert "20 steps take 8.0 s, 30 of 30 epochs 240.0 s" in str(test)


def test_a_total_is_of_the_epochs_whose_sizes_were_timed():
    test = speed_test(phases=[Phase(16, 64, 20, 0, 3.0, [(1.0, 10)], None)], cost_per_hour=36.0)
    assert test.seconds == pytest.approx(3 * 20 * 0.1) and test.usd == pytest.approx(0.06)
    assert "20 steps take 2.0 s, 3 of 30 epochs 6.0 s" in str(test)


def test_evaluations_before_the_first_one_take_no_time():
    # Of 5 epochs the fourth and the fifth are evaluated, 2 s each; 4 s of imports and 1 s are once.
    late = speed_test().wall_seconds(5, replace(DIGITS, eval_from=4))
    assert late == pytest.approx(speed_test().clock_seconds(5) + 4 + 1 + 2 * 2)
    assert speed_test().wall_seconds(5) == pytest.approx(late + 3 * 2)
    often = speed_test().wall_seconds(5, replace(DIGITS, eval_every=0.001))
    assert often == pytest.approx(late + (5 * 20 - 2) * 2)  # after each of 20 steps an epoch


def test_each_size_of_images_has_its_own_epochs():
    phases = [
        Phase(64, 64, 20, 0, 10.0, [(1.0, 10)], None, FIRST),
        Phase(96, 64, 20, 10, 16.0, [(4.0, 10)], None, (4.0, 10)),
    ]
    sized = speed_test(phases=phases)
    assert sized.clock_seconds(10) == pytest.approx(5.5 + 20.0)
    assert sized.clock_seconds(12) == pytest.approx(5.5 + 20.0 + 2 * 20 * 0.4)
    row = predict(sized)
    assert row.side_ms == pytest.approx([100, 400]) and row.share_of_peak is None
    assert row.step_ms == pytest.approx((10 * 100 + 6 * 400) / 16)
    assert "on average 100 ms at 64 pixels, 400 ms at 96 pixels" in estimate.table([row])


def test_each_batch_size_has_its_own_steps():
    phases = [  # 100 and 300 ms a step
        Phase(32, 64, 20, 0, 10.0, [(1.0, 10)], 1e9, FIRST),
        Phase(32, 256, 5, 10, 30.0, [(3.0, 10)], 1e9, (0.6, 2)),
    ]
    changing = speed_test(phases=phases)
    assert changing.clock_seconds(12) == pytest.approx(5.5 + 10 * 20 * 0.1 + 2 * 5 * 0.3)
    row = predict(changing)
    seconds = (10 * 2.0 + 20 * 1.5) / 30  # an epoch's
    assert row.examples_per_second == pytest.approx(20 * 64 / seconds)
    assert row.share_of_peak == pytest.approx(20 * 64 * 1e9 / seconds / 1e12)
    text = " ".join(estimate.table([row]).split())
    assert "on average 100 ms at batch size 64, 300 ms at batch size 256" in text
    # The second phase's first call takes 7 s for 2 steps, of which compiling is 6.4.
    phases[1] = phases[1]._replace(first=(7.0, 2))
    assert speed_test(phases=phases).clock_seconds(12) == pytest.approx(28.5 + 6.4)
    assert speed_test(phases=phases).clock_seconds(10) == pytest.approx(25.5)


def test_hours_and_dollars_are_those_of_the_median_run():
    row = predict(speed_test(recipe=with_evidence(measured(4, 5, 9, runs=3)), cost_per_hour=36.0))
    assert row.hours * 3600 == pytest.approx(15.5) and row.usd == pytest.approx(0.155)
    assert row.epochs == 5 and row.epochs_range == [4, 9] and (row.reached, row.runs) == (3, 3)
    assert row.usd_interval == pytest.approx([36 * hours for hours in row.hours_interval])
    assert row.wall_hours * 3600 == pytest.approx(15.5 + 4 + 1 + 5 * 2)
    assert row.share_of_peak == pytest.approx(1e9 * 64 / 0.1 / 1e12)


def test_runs_that_missed_are_counted_and_may_make_it_never():
    one = predict(speed_test(recipe=with_evidence(measured(4, 4, 4, runs=4))))
    assert one.hours < math.inf and one.hours_interval[1] == math.inf
    most = predict(speed_test(recipe=with_evidence(measured(4, runs=3)), cost_per_hour=1.0))
    assert most.hours == most.usd == math.inf and most.reached == 1 and not most.hours_interval
    assert most.facts()["hours"] == most.facts()["usd"] == "never"
    assert most.hours_all * 3600 == pytest.approx(5.5 + 30 * 2)


def test_the_newest_evidence_counts_also_if_it_missed():
    old, new = measured(8, 8, 8, runs=3, date="2025-01-01"), measured(runs=3, date="2026-01-01")
    for rows in ((old, new), (new, old)):
        row = predict(speed_test(recipe=with_evidence(*rows)))
        assert row.hours == math.inf and (row.reached, row.runs) == (0, 3) and not row.at_most
    older = new._replace(date="2024-01-01")
    assert predict(speed_test(recipe=with_evidence(old, older))).epochs == 8


@pytest.mark.parametrize("changes", [{"threshold": 90.0}, {"epochs": 40}, {"model": "resnet20_tf"}])
def test_evidence_is_not_of_another_threshold_model_or_number_of_epochs(changes):
    recipe = recipes.changed(with_evidence(measured(4, runs=1)), **changes)
    row = predict(speed_test(recipe=recipe))
    assert row.at_most and row.epochs == recipe.epochs and not row.runs and row.changed == changes


@pytest.mark.parametrize("grid", [1.0, 0.1])
@pytest.mark.parametrize("runs", [3, 5, 10, 20])
def test_an_interval_of_95_percent_holds_one_further_run_in_94_or_more(runs, grid):
    draw, hits = np.random.default_rng(runs), 0
    recipe = replace(DIGITS, eval_every=grid)
    for _ in range(1000):
        # Epochs to the threshold, seen at the next evaluation; the speed of another process.
        *epochs, next_one = (np.ceil(draw.normal(15, 2, runs + 1) / grid) * grid).tolist()
        laps = [(float(seconds), 10) for seconds in draw.normal(1.0, 0.05, 20)]
        low, high = speed._interval(speed_test(laps, recipe), epochs, runs)
        actual = speed_test().clock_seconds(next_one)
        hits += low <= actual * draw.normal(1, ERROR) <= high
    assert 945 <= hits <= 995  # 944 and 935 with one degree of freedom more


def test_too_few_runs_have_no_interval():
    assert predict(speed_test(recipe=with_evidence(measured(4, 5, runs=2)))).hours_interval == []


def test_estimates_go_through_json():
    test = speed_test(recipe=with_evidence(measured(4, 5, 6, runs=7)), cost_per_hour=1.0)
    assert pickle.loads(pickle.dumps(test)) == test  # as from its process
    row = predict(test)
    assert row.hours == math.inf
    assert Estimate.from_facts(json.loads(json.dumps(row.facts()))) == row
    with pytest.raises(ValueError, match="'hours' is missing"):
        Estimate.from_facts({k: v for k, v in row.facts().items() if k != "hours"})


def test_the_process_ends_with_the_one_that_started_it(tmp_path):
    (tmp_path / "x").mkdir()
    program = "from dawnbench_tf.training.process import *; end_with_parent(Path(sys.argv[1]))"
    command = [sys.executable, "-c", program, tmp_path / "x"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE)
    process.stdin.close()  # as when the parent is killed
    assert process.wait(60) == 1 and not (tmp_path / "x").exists()
