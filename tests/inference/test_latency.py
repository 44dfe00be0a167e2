"""The timing loop: overhead, outputs, warm-up, confidence interval, noise."""

import gc
import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from dawnbench_tf.inference import latency
from dawnbench_tf.inference.latency import Latencies


@pytest.fixture
def sleep(monkeypatch):
    """Advances the clock of the timing loop: calls have a known length on any machine."""
    now = 0.0

    def sleep(seconds):
        nonlocal now
        now += seconds

    clock = SimpleNamespace(perf_counter_ns=lambda: round(now * 1e9), monotonic=lambda: now)
    monkeypatch.setattr(latency, "time", clock)
    return sleep


def test_every_example_is_called_once_a_pass_and_its_first_output_is_kept():
    called = []
    latencies = latency.measure(lambda x: called.append(x) or -x, range(50), passes=3)
    assert latencies.seconds.shape == (3, 50) and latencies.outputs == [-x for x in range(50)]
    assert called[latencies.warm_up :] == [*range(50)] * 3
    assert latencies.warm_up % latency.WINDOW == 0


def test_calls_of_known_length_are_measured(sleep):
    latencies = latency.measure(sleep, [0.001, 0.003] * 50, passes=2)
    assert latencies.percentile(25) == pytest.approx(0.001)
    assert latencies.percentile(75) == pytest.approx(0.003)
    assert latencies.mean == pytest.approx(0.002)


def test_the_loop_adds_under_two_percent_to_half_a_millisecond():
    latencies = latency.measure(lambda example: None, [np.zeros((1, 32, 32, 3))] * 1000)
    assert latencies.overhead < 0.02 * 0.0005
    assert np.median(latencies.seconds) < 0.02 * 0.0005


def test_calls_that_still_get_faster_are_warmed_up_until_they_do_not(sleep):
    calls = []

    def settling(example):
        calls.append(example)
        sleep(max(0.0002, 0.004 - 0.0000385 * len(calls)))  # from 4 to 0.2 ms over 100 calls

    latencies = latency.measure(settling, range(50), passes=1)
    assert latencies.steady and latencies.warm_up >= 100
    assert latencies.percentile(50) == pytest.approx(0.0002)


def test_calls_that_never_settle_are_told(sleep):
    lengths = (0.0001 * 1.5 ** (call // 5) for call in itertools.count())
    latencies = latency.measure(lambda _: sleep(next(lengths)), [1] * 5, 1, warm_up_seconds=0.05)
    assert not latencies.steady and latencies.facts()["warmUpSteady"] is False


def test_the_garbage_collector_waits_and_comes_back():
    states = []
    latency.measure(lambda x: states.append(gc.isenabled()), [1] * 20)
    assert not any(states) and gc.isenabled()
    with pytest.raises(ZeroDivisionError):
        latency.measure(lambda x: 1 / 0, [1])
    assert gc.isenabled()


def test_slow_calls_get_one_pass_and_no_more(sleep):
    passes = []
    latency.measure(sleep, [0.01] * 3, 5, 0.0, lambda done, total: passes.append((done, total)))
    assert passes == [(0, 5)]


def latencies_of(seconds):
    return Latencies(np.asarray(seconds), [], 0, True, 0.0)


def test_the_interval_holds_the_true_mean_as_often_as_it_says():
    for passes in (1, 2, 5):
        random, hits = np.random.default_rng(0), 0
        own = 5 * (passes > 1) * random.random(400 // passes)  # of each example
        for _ in range(400):
            latencies = latencies_of(own + random.exponential(1.0, (passes, len(own))))
            hits += abs(latencies.mean - own.mean() - 1.0) < latencies.interval()
        assert 0.91 < hits / 400 < 0.99


def test_an_entry_s_facts_are_in_milliseconds():
    latencies = Latencies(np.arange(1, 102)[None] / 1000, [], 5, True, 2e-6)
    facts = latencies.facts()
    means = [block.mean() for block in np.array_split(np.arange(1, 102), 20)]  # in ms
    low, high = stats.t.interval(0.95, 19, scale=stats.sem(means))
    assert facts.pop("confidenceMs") == pytest.approx((high - low) / 2, abs=1e-6)
    assert facts == {
        "passes": 1, "warmUpCalls": 5, "warmUpSteady": True, "loopOverheadMs": 0.002,
        "p50Ms": 51, "p90Ms": 91, "p99Ms": 100,
    }  # fmt: skip


def test_nothing_is_not_timed():
    for examples, passes in (([], 1), ([1], 0), ([1], -1)):
        with pytest.raises(ValueError, match=f"Received: passes={passes}, {len(examples)} exampl"):
            latency.measure(abs, examples, passes)


def test_one_call_has_no_interval():
    assert "confidenceMs" not in latencies_of([[0.001]]).facts()
    assert latencies_of([[0.001, 0.002]]).facts()["confidenceMs"] > 0


def test_examples_that_differ_are_no_noise_but_a_busy_spell_is():
    steady = np.tile(np.linspace(1, 9, 200), (3, 1))
    steady += np.random.default_rng(0).normal(0, 0.01, steady.shape)
    assert not latencies_of(steady).noisy
    busy = steady.copy()
    busy[1] *= 2
    assert latencies_of(busy).noisy
    assert not latencies_of(steady[:1]).noisy  # of one pass it is not known
