"""Reports of a study: text, JSON, CSV, HTML figures."""

import csv
import io
import json
import re
import xml.etree.ElementTree as ElementTree
from collections import Counter

import pytest

from dawnbench_tf.refusals import Refusal
from dawnbench_tf.studies import figures, findings, grid, outcomes, reports, rows, store
from dawnbench_tf.studies.grid import Factor, Level
from tests.ranking.pages.test_pages import Tags
from tests.studies import samples


def make_outcome(planned, **facts):
    size, seed = int(planned.labels[0]), planned.seed
    if size == 64 and seed == 2:
        return samples.outcome(planned.labels, seed, 3.0, outcomes.DIVERGED)
    return samples.outcome(planned.labels, seed, 640 / size + seed, **facts)


@pytest.fixture
def folder(tmp_path):
    return samples.write(tmp_path / "a", samples.study(), make_outcome)


def sentences(folder, outcome, **study):
    samples.write(folder, samples.study(**{"trials": 5, **study}), outcome)
    return " ".join(findings.sentences(reports.load(folder)))


def test_the_text_tells_the_fastest_and_every_miss_with_its_reason(folder):
    text = reports.format_text(reports.load(folder))
    assert "6 runs in 2 settings: 5 reached, 1 diverged." in text
    ranges = "batch size 32 20.0 s to 22.0 s (3 of 3 runs); batch size 64 10.0 s to 11.0 s (2 of 3"
    assert f"To top1Accuracy 98: {ranges} runs). Too few runs to rank: 5 of each" in text
    assert "batch size 64, seed 2: diverged: why it diverged" in text
    assert not re.search("fastest|shortest|probability|trials", text)


def test_five_runs_of_each_are_ranked(tmp_path):
    results = reports.load(samples.write(tmp_path / "a", samples.study(trials=5), make_outcome))
    text = reports.format_text(results)
    assert "The shortest median to top1Accuracy 98 is that of batch size 64: 13.0 s, 1.69" in text
    assert "the difference is not significant" in text
    assert "takes less time than one of batch size 32 with probability 0.80" in text


def test_crashed_runs_are_no_misses(tmp_path):
    def outcome(run):
        crashes = run.seed > (4 if run.labels == ("64",) else 8)
        status = outcomes.CRASHED if crashes else outcomes.REACHED
        return samples.outcome(run.labels, run.seed, 10.0 + run.seed, status)

    results = reports.load(samples.write(tmp_path / "a", samples.study(trials=12), outcome))
    text = " ".join(reports.format_text(results).split())
    assert "that of batch size 32: 15.5 s." in text and "not significant" not in text
    assert "leave the median unknown with: batch size 64." in text
    assert "batch size 64 5 of 12 unknown" in text and "never" not in text
    first, second = results.highest
    assert first.share == pytest.approx((0.7009, 1), abs=1e-4) and second.speed_up is None  # 9 of 9
    headings, (_, cells) = reports.tabulate(results.highest)
    assert cells[headings.index("median time")] == "unknown"
    assert not {"nan", "inf"} & set(cells)
    assert reports.values(results)["summaries"][1]["median_seconds"] is None
    spread = sentences(tmp_path / "b", outcome, factors=(), trials=12)
    assert "9 of 12 runs reach top1Accuracy 98 (95 %: 70% to 100% of runs would, by th" in spread

    def rare(run):  # of five runs four crashed before their first row
        if run.labels == ("32",) or run.seed == 0:
            return samples.outcome(run.labels, run.seed, 100.0 if run.labels == ("32",) else 30.0)
        crashed = samples.outcome(run.labels, run.seed, 30.0, outcomes.CRASHED)
        return crashed._replace(rows=[])

    results = reports.load(samples.write(tmp_path / "c", samples.study(trials=5), rare))
    text = " ".join(reports.format_text(results).split())
    assert "batch size 64 30.0 s (1 of 5 runs). Too few runs to rank" in text
    assert "batch size 64 1 of 5 unknown" in text and "times as fast" not in text


def test_the_best_of_several_settings_is_held_to_a_stricter_level(tmp_path):
    levels = tuple(Level("", {"batch_size": size}) for size in (32, 64, 128, 256, 512, 1024, 16))

    def text(count):
        def outcome(run):
            seconds = 10 + run.seed - (3.5 if run.labels == ("64",) else 0)
            return samples.outcome(run.labels, run.seed, seconds)

        factors = (Factor("batch size", levels[:count]),)
        return sentences(tmp_path / str(count), outcome, factors=factors)

    for count, words in ((2, ""), (7, "; the difference is not significant for the best of 6")):
        pair = r"\. A run of batch size 64 takes less .* probability 0\.96, p = 0\.016\."
        ranked = rf"1\.41 times as fast as batch size 32 \([^)]*\){words}{pair}"
        assert re.search(ranked, text(count))


def test_the_median_of_two_runs_is_their_mean_or_what_it_is_at_least(tmp_path):
    for reached, median in enumerate(("did not converge", ">=10.0 s", "15.0 s")):

        def outcome(run, reached=reached):
            status = outcomes.REACHED if run.seed < reached else outcomes.MISSED
            return samples.outcome((), run.seed, 10.0 * (1 + run.seed), status)

        samples.write(tmp_path / str(reached), samples.study(factors=(), trials=2), outcome)
        results = reports.load(tmp_path / str(reached))
        text = reports.format_text(results)
        assert re.search(rf"^baseline +{reached} of 2 +{median}( |$)", text, re.MULTILINE)
        headings, (cells,) = reports.tabulate(results.highest)
        assert cells[headings.index("median time")] == median
        summary = reports.values(results)["summaries"][0]  # unknown is null, a miss is not
        assert (summary["median_seconds"] == "never") == (reached < 2) and summary["usd"] is None


def test_json_and_csv_have_every_run(folder):
    results = reports.load(folder)
    values = json.loads(json.dumps(reports.values(results), allow_nan=False))
    assert len(values["runs"]) == 6 and len(values["summaries"]) == 2
    assert values["summaries"][1]["speed_up"] == pytest.approx(21 / 11)
    text = io.StringIO()
    reports.write_csv([results], text)
    lines = list(csv.DictReader(io.StringIO(text.getvalue())))
    assert len(lines) == 6 and lines[0]["seconds"] == "20.0" and lines[0]["reached"] == "1"
    assert [line["batch size"] for line in lines[::3]] == ["32", "64"]
    assert {line["study"] for line in lines} == {"sample"}
    assert [line["status"] for line in lines].count("diverged") == 1


def test_the_page_stands_alone_and_shows_all_of_it(folder, tmp_path):
    reports.write_page(tmp_path / "report.html", [reports.load(folder)], [])
    text = (tmp_path / "report.html").read_text()
    tags = Tags(text).all_results
    links = [attrs.get(name, "#") for _, attrs in tags for name in ("src", "href", "xlink:href")]
    assert {link[0] for link in links} == {"#"}
    html = re.sub("<svg.*?</svg>", "", text, flags=re.DOTALL)
    names = [name for name, _ in Tags(html).all_results if name not in ("meta", "br")]
    assert names.count("tr") == 1 + 2 + 1 + 1  # settings, misses
    assert {name: html.count(f"</{name}>") for name in names} == Counter(names)
    assert "why it diverged" in text and "did not converge" not in text.split("<svg")[0]
    assert not re.search(r"@import|url\((?!#)", text)


def test_a_stranger_s_text_is_escaped(folder, tmp_path):
    results = reports.load(folder)
    study = samples.study(question="<script>alert(1)</script>")
    reports.write_page(tmp_path / "report.html", [results._replace(study=study)], ["<b>"])
    text = (tmp_path / "report.html").read_text()
    assert "<script" not in text and "&lt;script&gt;" in text and "&lt;b&gt;" in text


@pytest.mark.parametrize("name", sorted(figures.FIGURES))
def test_every_figure_is_drawn_of_every_kind_of_outcome(name, folder):
    facts = {"latency_ms": 2.0, "runtime": "litert float32", "heldOut": {samples.METRIC: 97.0}}
    results, study = reports.load(folder), samples.study(figure=name)
    for status in (outcomes.MISSED, outcomes.REACHED):
        again = [samples.outcome(("32",), seed, 9.0, status, **facts) for seed in range(3)]
        settings = [setting._replace(outcomes=again) for setting in results.settings]
        by_threshold = {t: reports.summaries.summarize(settings, t) for t in results.thresholds}
        changed = results._replace(study=study, settings=settings, by_threshold=by_threshold)
        assert ElementTree.fromstring(str(reports.render_svg(changed))).tag.endswith("svg")


def test_the_cumulative_factors_are_those_of_figure_3():
    labels = ["/".join(row) for row in figures._cumulative(rows.STUDIES["paper"]["factors"])]
    assert labels == ["-/-/-", "SD/-/-", "SD/4 GPUs/-", "SD/4 GPUs/batch x4"]
    assert not [*figures._cumulative(rows.STUDIES["paper"]["batch_size"])]  # of many levels


def test_two_studies_are_held_against_each_other(folder, tmp_path):
    five = samples.write(tmp_path / "five", samples.study(trials=5), make_outcome)
    slow = lambda run: samples.outcome(run.labels, run.seed, 100.0 + run.seed)  # noqa: E731
    other = samples.write(tmp_path / "b", samples.study(name="other", trials=5), slow)
    ours, theirs = reports.load(five), reports.load(other)
    few = reports.compare_studies(reports.load(folder), theirs, ("sample", "other"))
    assert few[0].endswith("other 102.0 s (5 of 5 runs). " + findings.TOO_FEW + ".")
    first, second = reports.compare_studies(ours, theirs, ("sample", "other"))
    line = "batch size 32: to top1Accuracy 98, sample 22.0 s (5 of 5 runs) and other 1"
    assert first.startswith(line)
    assert "other is 0.22 times as fast" in first and "with probability 0.00" in first
    assert "sample 13.0 s (4 of 5 runs)" in second
    reports.write_page(tmp_path / "both.html", [ours, theirs], [first, second])
    assert (tmp_path / "both.html").read_text().count("<svg") == 2
    one, two = figures.draw(ours), figures.draw(ours, ours)  # one below the other
    axes = [len(figure.findobj(figures.Axes)) for figure in (one, two)]
    assert axes[1] == 2 * axes[0] and two.get_size_inches()[1] == 2 * one.get_size_inches()[1]


def test_studies_with_nothing_in_common_are_refused(folder):
    results = reports.load(folder)
    with pytest.raises(Refusal, match="no task and threshold in common"):
        reports.compare_studies(results, results._replace(thresholds=(93,)), ("a", "b"))
    own = [  # of two folders of one's own, both by the recipe own/photos
        results._replace(study=samples.study(recipe="own/photos", settings={"data_dir": name}))
        for name in ("photos", "birds")
    ]
    with pytest.raises(Refusal, match="no task and threshold in common"):
        reports.compare_studies(*own, ("a", "b"))
    other = [s._replace(labels=("x",)) for s in results.settings]
    with pytest.raises(Refusal, match="no setting in common"):
        reports.compare_studies(results, results._replace(settings=other), ("a", "b"))


def test_a_factor_that_alone_never_reaches_the_goal_has_no_product(tmp_path):
    levels = Level("A", {"batch_size": 64}), Level("B", {"learning_rate": 0.2})
    factors = tuple(Factor(level.label.lower(), (Level("-", {}), level)) for level in levels)

    def text(misses, trials=3):
        def outcome(planned):
            status = outcomes.MISSED if planned.labels in misses else outcomes.REACHED
            return samples.outcome(planned.labels, planned.seed, 10.0, status)

        folder = tmp_path / f"{len(misses)}-{trials}"
        study = samples.study(factors=factors, figure="factors", trials=trials)
        return reports.format_text(reports.load(samples.write(folder, study, outcome)))

    assert "all together 1.00. Alone no more than half reach it: A." in text([("A", "-")])
    product = "1.00 (A) x 1.00 (B) = 1.00; all together 1.00; an interval needs five runs"
    assert product in " ".join(text([]).split())
    whole = "1.00 of it (95 %: 1.00 to 1.00): consistent with the product."
    assert whole in " ".join(text([], 5).split())


def test_the_baseline_is_the_plan_s_first_setting_whichever_run_ended_first(tmp_path):
    samples.write(tmp_path / "a", samples.study(trials=6), make_outcome)
    (tmp_path / "a/32/seed-0/outcome.json").unlink()
    results = reports.load(tmp_path / "a")
    assert [row.setting for row in results.highest] == ["batch size 32", "batch size 64"]
    assert findings.sentences(results)[0].startswith("11 of 12 runs in 2 settings")
    for path in (tmp_path / "a").glob("32/*/outcome.json"):
        path.unlink()
    with store.claimed(tmp_path / "b", samples.study()):
        pass
    for name in "ab":
        with pytest.raises(Refusal, match="no run of 32 has ended yet"):
            reports.load(tmp_path / name)
    assert len(grid.plan(store.read(tmp_path / "b"))) == 6


def hit(planned, epochs, pace, **facts):
    """An outcome that reaches its goal after `epochs` of `pace` seconds each."""
    rows = [{"epoch": epochs, "hours": epochs * pace / 3600, samples.METRIC: 99.0}]
    return samples.outcome(planned.labels, planned.seed, **facts)._replace(rows=rows)


def test_the_spread_of_one_setting(tmp_path):
    text = sentences(tmp_path / "all", lambda run: hit(run, 2 + run.seed, 5), factors=())
    assert "5 of 5 runs reach top1Accuracy 98 (95 %: 57% to 100% of runs would)." in text
    assert re.search(r"median 20\.0 s \(95 %: .*\), mean 20\.0 s \(95 %: ", text)
    # sqrt(2.5) / 4 = 39.5 %; (1.96 x 39.5 / 5)^2 trials.
    assert "Coefficient of variation 39.5%: 243 trials give the mean to 5 %." in text
    assert text.endswith("Epochs to it vary by 39.5%, the time of an epoch by 0.0%.")

    def outcome(run):
        missed = samples.outcome((), run.seed, 9.0, outcomes.MISSED)
        return missed if run.seed == 5 else hit(run, 4, 4 + run.seed)

    text = sentences(tmp_path / "miss", outcome, factors=(), trials=6)
    assert "mean of those that reach it 24.0 s" in text and "5 of 6 runs" in text
    # sqrt(2.5) / 6 = 26.4 %
    assert text.endswith("Epochs to it vary by 0.0%, the time of an epoch by 26.4%.")


def test_the_trade_off_of_epochs_and_throughput(tmp_path):
    def outcome(run):
        large = run.labels == ("64",)
        epochs, pace = (4, 3) if large else (2, 10)
        return hit(run, epochs, pace, examplesPerSecond=1000 + 2000 * large)

    text = sentences(tmp_path, outcome, figure="tradeoff")
    assert "Fewest epochs: batch size 32 (2); highest throughput: batch size 64 (3,000 exa" in text
    assert "; shortest time: batch size 64." in text


def test_scaling_over_devices(tmp_path):
    two = Level("two", {"strategy": "mirrored", "logical_cpus": 2})

    def outcome(run):
        facts = {"utilization": {"communicationShare": 0.1}} if run.labels == ("two",) else {}
        return hit(run, 2, 5, examplesPerSecond=1000 + 500 * len(facts), **facts)

    factors = (Factor("devices", (Level("one", {}), two)),)
    text = sentences(tmp_path, outcome, figure="scaling", factors=factors)
    scaling = "2 devices reach 75% of 2 times the throughput of 1; communication is 10% of a step"
    assert scaling in text


def test_held_out_scores_latencies_and_settings_that_never_reach_it(tmp_path):
    def outcome(run):
        if run.labels == ("64",):
            return samples.outcome(run.labels, run.seed, 9.0, outcomes.MISSED)
        held_out, latency = (97, 98, 96, 97, 97)[run.seed], (1.0, 4.0, 2.0, 9.0, 1.5)[run.seed]
        facts = {"latency_ms": latency, "runtime": "litert float32"}
        return hit(run, 2, 5, heldOut={samples.METRIC: held_out}, **facts)

    text = sentences(tmp_path, outcome)
    gap = r"batch size 32: test score minus held-out score \+2\.00 \(95 %: .*, 5 runs\)\."
    assert re.search(gap, text) and "batch size 64: test score" not in text
    assert text.endswith("batch size 32 answers in 2 ms (litert float32).")
    assert "No more than half of the runs reach top1Accuracy 98 with: batch size 64." in text


def test_long_names_stay_whole_in_the_table(tmp_path):
    rates = tuple(Level("", {"weight_decay": rate}) for rate in (1e-5, 2e-5))
    flips = tuple(Level("", {"nesterov": value}) for value in (False, True))
    study = samples.study(factors=(Factor("nesterov", flips), Factor("weight decay", rates)))
    samples.write(tmp_path / "a", study, lambda planned: samples.outcome((), planned.seed))
    lines = reports.format_text(reports.load(tmp_path / "a")).splitlines()
    assert "nesterov False, weight decay 1e-05" in lines
    assert "nesterov True, weight decay 2e-05" in lines
