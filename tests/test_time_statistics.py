"""Statistics against tables, hand-computed cases and simulation."""

import math
import sys

import matplotlib.image
import numpy as np
import pytest
from scipy import stats

import dawnbench_tf
from dawnbench_tf import time_statistics, tta
from dawnbench_tf.refusals import Refusal
from dawnbench_tf.time_statistics import Times

INF = math.inf


def test_kaplan_meier_is_the_published_table_of_freireich_s_trial():
    # Weeks, 6-MP (Freireich et al. 1963; Kleinbaum & Klein, table 2.1); limits: lifelines.
    weeks = [6, 6, 6, 7, 10, 13, 16, 22, 23, 6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35]
    times = Times(np.array(weeks, float), np.arange(21) >= 9)
    seconds, shares, limits = time_statistics.kaplan_meier(times)
    assert seconds.tolist() == [6, 7, 10, 13, 16, 22, 23]
    survival = [0.8571, 0.8067, 0.7529, 0.6902, 0.6275, 0.5378, 0.4482]
    np.testing.assert_allclose(1 - shares, survival, atol=5e-5)
    np.testing.assert_allclose(1 - limits[0], [0.951552, 0.619718], atol=1e-6)
    np.testing.assert_allclose(1 - limits[-1], [0.680143, 0.188052], atol=1e-6)
    assert time_statistics._passing(times.seconds, times.censored, (0.5,)) == 23  # its median
    assert math.isnan(time_statistics.median(times))  # 12 of 21 are censored


def test_runs_that_never_reach_it_keep_the_share_down_whenever_they_ended():
    seconds, shares, _ = time_statistics.kaplan_meier(whole(3, INF, 1, 2, INF))
    assert seconds.tolist() == [1, 2, 3] and shares == pytest.approx([0.2, 0.4, 0.6])


def test_nothing_that_reached_has_no_curve_and_no_median():
    times = whole(INF, INF)
    assert len(time_statistics.kaplan_meier(times)[0]) == 0
    assert (time_statistics.median(times), time_statistics.median_interval(times)) == (INF, None)
    few = whole(*[1.0] * 4)
    assert time_statistics.bootstrap_interval(np.divide, whole(*[1.0] * 5), few) is None


def test_wilson_is_newcombe_s_table():
    for successes, runs, low, high in (  # Newcombe 1998, table I, method 3
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ):
        assert time_statistics.wilson(successes, runs) == pytest.approx((low, high), abs=5e-5)


def test_the_median_is_the_mean_of_the_two_middle_times():
    assert time_statistics.median(whole(4.0, 1.0, INF, INF)) == INF
    draw = np.random.default_rng(5)
    for count in range(2, 12):
        seconds = draw.integers(1, 9, count).astype(float)
        assert time_statistics.median(whole(*seconds)) == np.median(seconds)
        # A run that crashed before all others were at their goals tells nothing.
        crashed = Times(np.r_[0.5, seconds], np.arange(count + 1) == 0)
        assert time_statistics.middle(crashed) == time_statistics.middle(whole(*seconds))


def test_few_runs_are_not_ranked():
    versus = time_statistics.compare(whole(1.0, 1.1, 1.2, 1.3), whole(*[9.0] * 5))
    assert versus.speed_up == pytest.approx(9 / 1.15) and versus[1:] == (None,) * 4
    assert None not in time_statistics.compare(whole(1.0, 1.1, 1.2, 1.3, 1.4), whole(*[9.0] * 5))


def test_a_bootstrap_interval_is_scipy_s_and_leaves_out_what_is_undefined():
    values = np.random.default_rng(1).normal(100, 10, 41)
    ours = time_statistics.bootstrap_interval(np.asarray, whole(*values))
    theirs = stats.bootstrap((values,), np.median, method="percentile", rng=2).confidence_interval
    assert ours == pytest.approx(tuple(theirs), abs=0.5)
    for estimates, interval in (
        (np.arange(1, 1002.0), (26, 976)),  # of 1,001 values 2.5 % are 25.025, 97.5 % are 975.975
        (np.full(9, math.nan), None),
    ):
        ours = time_statistics.bootstrap_interval(lambda _, value=estimates: value, whole(*values))
        assert ours == interval


def test_a_median_is_between_the_published_ranks_and_in_95_of_100_samples():
    for runs, rank in ((5, 1), (6, 1), (8, 1), (9, 2), (12, 3), (25, 8)):  # Conover 1999, table A3
        times = np.random.default_rng(runs).permutation(np.arange(1.0, runs + 1))
        assert time_statistics.median_interval(whole(*times)) == (rank, runs + 1 - rank)
        late = Times(np.r_[times, runs + 1.0], np.arange(runs + 1) == runs)  # one that crashed
        assert time_statistics.median_interval(late)[0] == rank
        missed = np.where(times > runs - rank, INF, times)
        assert time_statistics.median_interval(whole(*missed)) == (rank, INF)
    draw = np.random.default_rng(0)
    for runs, crashed in ((7, 0.0), (15, 0.0), (7, 0.3), (15, 0.2)):
        hits = []
        for times in draw.lognormal(0, 1, (500, runs)):
            censored = draw.random(runs) < crashed
            interval = time_statistics.median_interval(
                Times(np.where(censored, times * draw.random(runs), times), censored)
            )
            hits += [(interval[0] <= 1, interval[1] >= 1)] if interval else []
        assert (np.mean(hits, axis=0) > 0.96).all() and np.all(hits, axis=1).mean() > 0.93


def test_the_interval_of_a_mean_is_student_s_and_holds_it_in_95_of_100_samples():
    values = np.random.default_rng(1).normal(100, 10, (2000, 5))
    expected = stats.t.interval(0.95, 4, values[0].mean(), stats.sem(values[0]))
    intervals = np.array([time_statistics.mean_interval(row) for row in values])
    assert intervals[0] == pytest.approx(expected)
    hits = (intervals[:, 0] < 100) & (intervals[:, 1] > 100)
    assert hits.mean() == pytest.approx(0.95, abs=0.02)
    assert time_statistics.mean_interval([2.0, 2.0]) == (2, 2)
    assert time_statistics.mean_interval([2.0]) is None
    for variation, trials in ((0.01, 3), (0.038, 5), (0.1, 18)):  # the first whose half is 5 %
        halves = [variation * stats.t.ppf(0.975, n - 1) / n**0.5 for n in (trials - 1, trials)]
        assert halves[0] > 0.05 >= halves[1]
        assert time_statistics.trials_for_mean(variation) == trials


def test_the_probability_to_be_faster_counts_pairs():
    ours, theirs = np.array([1.0, 5.0, INF]), np.array([2.0, 5.0, INF, INF])
    pairs = [(a < b) + 0.5 * (a == b) for a in ours for b in theirs]
    ours, theirs = whole(*ours), whole(*theirs)
    assert time_statistics.probability_faster(ours, theirs) == pytest.approx(np.mean(pairs))
    assert time_statistics.probability_faster(theirs, ours) == pytest.approx(1 - np.mean(pairs))
    assert time_statistics.p_value(ours, ours) == 1


def whole(*seconds):
    return Times(np.array(seconds, float), np.zeros(len(seconds), bool))


def test_a_crash_after_a_second_makes_no_setting_faster():
    first = whole(100.0, 101.0, 101.0, 102.0, 103.0)
    crashed = Times([1.0] * 4 + [30.0], [True] * 4 + [False])
    assert time_statistics.compare(crashed, first) == (None,) * 5
    assert time_statistics.median_interval(crashed) is None
    for times in (Times(np.arange(1.0, 11), np.arange(10) > 4), whole(*[INF] * 5)):
        assert time_statistics.median_interval(times) is None
    crashed = Times([1.0] * 4 + [101.0] * 4 + [102.0], [True] * 4 + [False] * 5)
    versus = time_statistics.compare(crashed, first)
    # By hand: 20 pairs are open; 101 is less than two of five, equal to two; 102 than and to one.
    assert versus.faster == pytest.approx((20 * 0.5 + 4 * (2 + 1) + 1 + 0.5) / 45)
    assert versus.speed_up == pytest.approx(101 / 101) and versus.p_value > 0.5
    assert time_statistics.p_value(whole(*[5.0] * 5), whole(*[5.0] * 5)) == 1
    nothing = Times(np.ones(5), np.ones(5, bool))
    assert time_statistics.probability_faster(whole(1.0), nothing) == 1  # they ran on after 1 s
    assert time_statistics.p_value(nothing, nothing) == 1
    assert time_statistics.compare(nothing, first) == (None,) * 5


def test_gehan_s_test_is_mann_and_whitney_s_without_crashes_and_a_permutation_s_with():
    draw = np.random.default_rng(3)
    for _ in range(20):
        a, b = draw.integers(1, 9, 8).astype(float), draw.integers(1, 9, 7).astype(float)
        late = Times(np.r_[b, 99.0], np.r_[np.zeros(7, bool), True])  # after all others: the same
        last = stats.mannwhitneyu(a, np.r_[b, 99.0], method="asymptotic", use_continuity=False)
        assert time_statistics.p_value(whole(*a), late) == pytest.approx(last.pvalue)
    seconds, censored = draw.exponential(10, 14), draw.random(14) < 0.3

    def halves(order):
        return [Times(seconds[half], censored[half]) for half in np.split(order, 2)]

    orders = [np.arange(14), *(draw.permutation(14) for _ in range(4000))]
    effects = [abs(time_statistics.probability_faster(*halves(order)) - 0.5) for order in orders]
    by_chance = np.mean(np.array(effects[1:]) >= effects[0] - 1e-12)
    assert time_statistics.p_value(*halves(orders[0])) == pytest.approx(by_chance, abs=0.05)


def test_the_middle_times_are_where_scipy_s_survival_passes_a_half():
    draw = np.random.default_rng(3)
    for _ in range(300):
        count = draw.integers(1, 12)
        times = draw.integers(0, 6, count).astype(float)
        censored = draw.random(count) < 0.3
        times[~censored & (draw.random(count) < 0.3)] = INF
        last = np.where(np.isfinite(times), times, 99)
        reached = ~censored & np.isfinite(times)
        if not reached.any():
            continue
        data = stats.CensoredData(uncensored=last[reached], right=last[~reached])
        survival = stats.ecdf(data).sf
        shares = survival.probabilities.round(9)
        first, second = (survival.quantiles[s] for s in (shares <= 0.5, shares < 0.5))
        # It is known that a middle run misses if fewer than its rank did not miss for sure.
        missed = count - np.isinf(times).sum() <= np.array([(count - 1) // 2, count // 2])
        never = np.where(missed, INF, math.nan)
        wanted = [min(first, default=never[0]), min(second, default=never[1])]
        if 2 * censored.sum() >= count:
            wanted = never
        np.testing.assert_equal(time_statistics.middle(Times(times, censored)), wanted)


def test_what_is_no_time_is_refused():
    no = [False, False]
    for seconds, censored in (([1, math.nan], no), ([1, -1], no), ([1], no), ([1, INF], [0, 1])):
        with pytest.raises(ValueError, match="should be numbers of at least 0, finite for a crash"):
            Times(seconds, censored)


def test_after_the_trials_needed_a_test_tells_two_recipes_apart():
    draw, shift = np.random.default_rng(0), 1.0
    probability = stats.norm.cdf(shift / math.sqrt(2))
    trials = time_statistics.trials_needed(probability)
    detected = [
        stats.mannwhitneyu(draw.normal(size=trials), draw.normal(shift, size=trials)).pvalue < 0.05
        for _ in range(500)
    ]
    assert 0.74 < np.mean(detected) < 0.88
    assert time_statistics.trials_needed(0.5) == INF


def test_speed_ups_are_ratios_of_medians():
    versus = time_statistics.compare(whole(*[5.0] * 5), whole(10.0, 10.0, 10.0, 11.0, 11.0))
    assert versus.speed_up == 2 and versus.speed_up_interval == pytest.approx((2, 2.2))
    assert time_statistics.compare(whole(5.0), whole(INF)).speed_up is None
    assert time_statistics.compare(whole(INF), whole(INF)).speed_up is None
    rare = time_statistics.compare(whole(*[INF] * 5), whole(5.0, *[INF] * 4))
    assert rare.speed_up is rare.speed_up_interval is None  # of resamples with 5.0 alone: 0 to 0


def test_where_an_interval_is_undefined_it_goes_from_the_lower_limit_before_to_1():
    *earlier, last = time_statistics.kaplan_meier(whole(1.0, 2.0, 3.0))[2]
    assert np.isfinite(earlier).all() and last.tolist() == [earlier[-1][0], 1]
    assert time_statistics.kaplan_meier(whole(1.0))[2].tolist() == [[0, 1]]


def logs(folder, name, times, column="val_accuracy"):
    """Writes a timer's log for each time: it reaches 0.9 after that time, or never if inf."""
    paths = []
    for number, seconds in enumerate(times):
        path = folder / f"{name}{number}.tsv"
        last = f"2\t{seconds / 3600}\t0.9\n" if math.isfinite(seconds) else "2\t1.0\t0.8\n"
        path.write_text(f"epoch\thours\t{column}\n1\t1e-5\t0.5\n{last}")
        paths.append(path)
    return paths


def test_two_kinds_of_fits_are_compared_by_their_timers_logs(tmp_path):
    adam = logs(tmp_path, "adam", [10, 11, 12, 13, 14])
    sgd = logs(tmp_path, "sgd", [20, 22, 24, 26, INF])
    versus = tta.compare(adam, sgd, 0.9, names=("adam", "sgd"), plot=tmp_path / "p.png")
    assert versus.medians == pytest.approx((12, 24)) and versus.speed_up == pytest.approx(2)
    assert versus.seconds[1][-1] == INF and versus.faster == 1
    assert versus.p_value == pytest.approx(2 / math.comb(10, 5))  # of all orders, two are so
    lines = str(versus).splitlines()
    assert lines[0] == "adam: 5 of 5 fits reached it, median 12 s (95 %: 10 s to 14 s)"
    assert lines[1] == "sgd: 4 of 5 fits reached it, median 24 s (95 %: 20 s to no limit)"
    assert lines[2].startswith("adam is 2 times as fast as sgd (95 %: 1.")
    assert lines[3].endswith("with probability 1.00, p = 0.0079") and len(lines) == 4
    assert matplotlib.image.imread(tmp_path / "p.png").std() > 0.01


def test_few_fits_have_medians_and_no_winner(tmp_path):
    versus = tta.compare(logs(tmp_path, "a", [1, 2]), logs(tmp_path, "b", [4, INF]), 0.9)
    assert versus.medians == pytest.approx((1.5, INF)) and versus.faster is None
    assert str(versus).splitlines()[1:] == [
        "second: 1 of 2 fits reached it, never in half of them",
        "too few fits to say which is faster: 5 of each are the least",
    ]
    # A loss is reached from above: 0.5, then 0.9.
    paths = logs(tmp_path, "loss", [3], column="val_loss")
    assert tta.compare(paths, paths, 0.6, "val_loss").seconds[0] == pytest.approx([0.036])


def test_equal_fits_have_no_winner(tmp_path):
    paths = logs(tmp_path, "a", [1, 2, 3, 4, 5])
    ending = "probability 0.50, p = 1; neither is faster in these runs"
    assert str(tta.compare(paths, paths, 0.9)).endswith(ending)


def test_what_is_no_log_is_named(tmp_path):
    paths = logs(tmp_path, "a", [1])
    with pytest.raises(ValueError, match=r"a0.tsv: should be a timer's .* epoch, hours, val_acc"):
        tta.compare(paths, paths, 0.9, "val_loss")
    (tmp_path / "empty.tsv").touch()
    (tmp_path / "binary.tsv").write_bytes(b"\xff\xfe")
    for name in ("empty.tsv", "binary.tsv"):
        with pytest.raises(ValueError, match=f"{name}: .* Received columns: none"):
            tta.compare([tmp_path / name], paths, 0.9)
    for hours in ("nan", "-1.0"):
        (tmp_path / "hours.tsv").write_text(f"epoch\thours\tval_accuracy\n1\t{hours}\t0.95\n")
        with pytest.raises(ValueError, match="hours.tsv: should be a timer's log"):
            tta.compare([tmp_path / "hours.tsv"], paths, 0.9)
    with pytest.raises(Refusal, match=r"--plot=p.jpg: should end in one of .png"):
        tta.compare(paths, paths, 0.9, plot="p.jpg")
    with pytest.raises(ValueError, match="should be lists of paths. Received: a.tsv"):
        tta.compare("a.tsv", paths, 0.9)
    with pytest.raises(ValueError, match="`mode` should be .* Received: mode='maximize'"):
        tta.compare(paths, paths, 0.9, mode="maximize")
    with pytest.raises(ValueError, match="`threshold` should be a number"):
        tta.compare(paths, paths, INF - INF)


def test_without_scipy_that_is_said_in_one_line(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "dawnbench_tf.time_statistics", None)
    monkeypatch.delattr(dawnbench_tf, "time_statistics")
    with pytest.raises(Refusal, match="compare: needs SciPy .*pip install scipy matplotlib"):
        tta.compare([], [], 0.9)
