"""Statistics against tables, hand-computed cases and simulation."""

import math

import numpy as np
import pytest
from scipy import stats

from dawnbench_tf.studies import estimates
from dawnbench_tf.studies.estimates import Times

INF = math.inf


def test_kaplan_meier_is_the_published_table_of_freireich_s_trial():
    # 6-MP in leukemia, weeks (Freireich et al. 1963; Kleinbaum & Klein, table 2.1); limits:
    # lifelines.
    weeks = [6, 6, 6, 7, 10, 13, 16, 22, 23, 6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35]
    times = Times(np.array(weeks, float), np.arange(21) >= 9)
    seconds, shares, limits = estimates.kaplan_meier(times)
    assert seconds.tolist() == [6, 7, 10, 13, 16, 22, 23]
    survival = [0.8571, 0.8067, 0.7529, 0.6902, 0.6275, 0.5378, 0.4482]
    np.testing.assert_allclose(1 - shares, survival, atol=5e-5)
    np.testing.assert_allclose(1 - limits[0], [0.951552, 0.619718], atol=1e-6)
    np.testing.assert_allclose(1 - limits[-1], [0.680143, 0.188052], atol=1e-6)
    assert estimates.median(times) == 23


def test_runs_that_never_reach_it_keep_the_share_down_whenever_they_ended():
    seconds, shares, _ = estimates.kaplan_meier(
        Times(np.array([3, INF, 1, 2, INF]), np.zeros(5, bool))
    )
    assert seconds.tolist() == [1, 2, 3] and shares == pytest.approx([0.2, 0.4, 0.6])


def test_nothing_that_reached_has_no_curve_and_no_median():
    times = Times(np.array([INF, INF]), np.zeros(2, bool))
    assert len(estimates.kaplan_meier(times)[0]) == 0
    assert (estimates.median(times), estimates.median_interval(times)) == (INF, None)


@pytest.mark.parametrize(
    ("successes", "runs", "low", "high"),  # Newcombe 1998, table I, method 3
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_is_newcombe_s_table(successes, runs, low, high):
    assert estimates.wilson(successes, runs) == pytest.approx((low, high), abs=5e-5)


def test_the_median_is_the_mean_of_the_two_middle_times_or_lies_between_them():
    assert estimates.middle(whole(4.0, 1.0, INF, INF)) == (4, INF)
    assert estimates.middle(whole(4.0, INF, INF)) == (INF, INF)
    assert estimates.median(whole(4.0, 1.0, INF, INF)) == INF
    draw = np.random.default_rng(5)
    for count in range(1, 12):
        seconds = draw.integers(1, 9, count).astype(float)
        assert estimates.median(whole(*seconds)) == np.median(seconds)
        # A run that crashed before all others were at their goals tells nothing.
        crashed = Times(np.r_[0.5, seconds], np.arange(count + 1) == 0)
        assert estimates.middle(crashed) == estimates.middle(whole(*seconds))


def test_few_runs_are_not_ranked():
    versus = estimates.compare(whole(1.0, 1.1, 1.2, 1.3), whole(*[9.0] * 5))
    assert versus.speed_up == pytest.approx(9 / 1.15) and versus[1:] == (None,) * 4
    assert None not in estimates.compare(whole(1.0, 1.1, 1.2, 1.3, 1.4), whole(*[9.0] * 5))


def test_a_bootstrap_interval_is_scipy_s_and_holds_infinite_times():
    values = np.random.default_rng(1).normal(100, 10, 40)
    ours = estimates.bootstrap(values, np.mean)
    theirs = stats.bootstrap(
        (values,), np.mean, method="percentile", rng=np.random.default_rng(2)
    ).confidence_interval
    assert ours == pytest.approx((theirs.low, theirs.high), abs=0.5)
    assert estimates.bootstrap([1.0, 2.0, 3.0, INF, INF], np.median)[1] == INF
    assert estimates.bootstrap([1.0, 2.0, 3.0, 4.0], np.mean) is None


def test_a_crashed_run_is_censored_in_the_median():
    seconds = np.array([10.0, 20.0, 5.0, 30.0])
    crashed = Times(seconds, np.array([False, False, True, False]))
    # By hand: at 10, 3 at risk: 2/3 are left; at 20: 1/3.
    assert estimates.kaplan_meier(crashed)[1] == pytest.approx([1 / 3, 2 / 3, 1])
    assert estimates.median(crashed) == 20


def test_the_probability_to_be_faster_counts_pairs():
    ours, theirs = np.array([1.0, 5.0, INF]), np.array([2.0, 5.0, INF, INF])
    pairs = [(a < b) + 0.5 * (a == b) for a in ours for b in theirs]
    ours, theirs = whole(*ours), whole(*theirs)
    assert estimates.probability_faster(ours, theirs) == pytest.approx(np.mean(pairs))
    assert estimates.probability_faster(theirs, ours) == pytest.approx(1 - np.mean(pairs))
    assert estimates.p_value(ours, ours) == 1


def whole(*seconds):
    return Times(np.array(seconds, float), np.zeros(len(seconds), bool))


def test_a_crash_after_a_second_makes_no_setting_faster():
    first = whole(100.0, 101.0, 101.0, 102.0, 103.0)
    crashed = Times(
        np.array([1.0, 1.0, 1.0, 1.0, 101.0]), np.array([True, True, True, True, False])
    )
    versus = estimates.compare(crashed, first)
    # By hand: 20 pairs are open; 101 is less than two of five, equal to two.
    assert versus.faster == pytest.approx((20 * 0.5 + 2 + 1) / 25)
    assert versus.speed_up == pytest.approx(101 / 101) and versus.p_value > 0.5
    nothing = Times(np.array([1.0, 1.0]), np.array([True, True]))
    assert estimates.compare(nothing, first) == (None,) * 5


def test_gehan_s_test_is_mann_and_whitney_s_without_crashes_and_a_permutation_s_with():
    draw = np.random.default_rng(3)
    for _ in range(20):
        a, b = draw.integers(1, 9, 8).astype(float), draw.integers(1, 9, 7).astype(float)
        late = Times(np.r_[b, 99.0], np.r_[np.zeros(7, bool), True])  # after all others: the same
        last = stats.mannwhitneyu(a, np.r_[b, 99.0], method="asymptotic", use_continuity=False)
        assert estimates.p_value(whole(*a), late) == pytest.approx(last.pvalue)
    seconds, censored = draw.exponential(10, 14), draw.random(14) < 0.3
    pooled = Times(seconds, censored)

    def probability(order):
        return estimates.probability_faster(
            *(Times(seconds[o], censored[o]) for o in (order[:7], order[7:]))
        )

    observed = abs(probability(np.arange(14)) - 0.5)
    by_chance = [
        abs(probability(draw.permutation(14)) - 0.5) >= observed - 1e-12 for _ in range(4000)
    ]
    halves = (Times(*(part[s] for part in pooled)) for s in (slice(7), slice(7, None)))
    assert estimates.p_value(*halves) == pytest.approx(np.mean(by_chance), abs=0.05)


def test_after_the_trials_needed_a_test_tells_two_recipes_apart():
    draw, shift = np.random.default_rng(0), 1.0
    probability = stats.norm.cdf(shift / math.sqrt(2))
    trials = estimates.trials_needed(probability)
    detected = [
        stats.mannwhitneyu(draw.normal(size=trials), draw.normal(shift, size=trials)).pvalue < 0.05
        for _ in range(500)
    ]
    assert 0.74 < np.mean(detected) < 0.88
    assert estimates.trials_needed(0.5) == INF


def test_speed_ups_are_ratios_of_medians():
    versus = estimates.compare(whole(*[5.0] * 5), whole(10.0, 10.0, 10.0, 11.0, 11.0))
    assert versus.speed_up == 2 and versus.speed_up_interval == pytest.approx((2, 2.2))
    assert estimates.compare(whole(5.0), whole(INF)).speed_up is None
    assert estimates.compare(whole(INF), whole(INF)).speed_up is None


def test_where_an_interval_is_undefined_it_goes_from_the_lower_limit_before_to_1():
    *earlier, last = estimates.kaplan_meier(whole(1.0, 2.0, 3.0))[2]
    assert np.isfinite(earlier).all() and last.tolist() == [earlier[-1][0], 1]
    assert estimates.kaplan_meier(whole(1.0))[2].tolist() == [[0, 1]]
