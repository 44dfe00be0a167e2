"""Reports of studies as text, JSON, CSV and an HTML page; comparisons of two studies."""

import csv
import io
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from rich.cells import cell_len

from dawnbench_tf import files, terminal, time_statistics
from dawnbench_tf.clock import in_units
from dawnbench_tf.recipes.speed import NEVER
from dawnbench_tf.refusals import Refusal, defused, shown
from dawnbench_tf.studies import figures, findings, grid, store, summaries
from dawnbench_tf.studies.outcomes import Outcome
from dawnbench_tf.studies.summaries import Results, Setting, Summary

__all__ = ["load"]

TEMPLATES = Path(__file__).parent / "templates"
MOST_ROWS = 200  # rows in the page's table of runs that missed their goal, at most


def load(folder: str | Path) -> Results:
    """Reads the results of a study so far.

    Args:
      folder: folder of the study.

    Raises:
      Refusal: the folder holds no study, or no run of its baseline has ended.
    """
    folder = Path(folder)
    study = store.read(folder)
    try:
        planned = grid.plan(study)
    except Refusal as refusal:  # of a setting that this version does not take
        raise Refusal(f"{folder / store.STUDY}: {refusal}") from None
    labels, factors = {run.name: run.labels for run in planned}, [f.name for f in study.factors]
    # As planned, whichever ended first: all are compared with the first setting.
    by_labels: dict[tuple[str, ...], list[Outcome]] = {run.labels: [] for run in planned}
    for name, outcome in store.read_outcomes(folder, planned).items():
        by_labels[labels[name]].append(outcome)
    if not by_labels[planned[0].labels]:
        first = planned[0].name.partition("/")[0]
        raise Refusal(f"{folder}: no run of {first} has ended yet; `dawnbench study` continues it")
    settings = [Setting(own, group, tuple(factors)) for own, group in by_labels.items() if group]
    thresholds = summaries.choose_thresholds(study, settings)
    by_threshold = {t: summaries.summarize(settings, t) for t in thresholds}
    return Results(study, len(planned), settings, thresholds, by_threshold)


def printable(lines: Iterable[str]) -> str:
    """Joins lines without control characters, which untrusted names in them may contain."""
    return "\n".join(map(shown, lines))


def format_text(results: Results) -> str:
    """Formats findings, tables and missed runs as text."""
    parts = [findings.sentences(results), *(list(_table(results, t)) for t in results.thresholds)]
    missed = summaries.misses(results.settings, results.thresholds[-1])
    if missed:
        texts = [(f"{name}, seed {o.seed}: {o.status}", o.reason) for name, o in missed]
        parts.append([": ".join(filter(None, text)) for text in texts])
    return "\n\n".join(map(printable, parts))


def _table(results: Results, threshold: float) -> Iterator[str]:
    heads, rows = tabulate(results.by_threshold[threshold])
    width = min(25, max(cell_len(row[0]) for row in [heads, *rows]))  # the lines fit 80 columns
    yield f"To {results.metric} {threshold:g}:"
    for name, *cells in [heads, *rows]:
        name = shown(name)
        if cell_len(name) > width:  # a cut one could be another's
            yield name
            name = ""
        named = zip(heads[1:], cells, strict=True)
        texts = [f" {cell:>{IN_TEXT[head]}}" for head, cell in named if head in IN_TEXT]
        yield "".join([terminal.padded(name, width), *texts]).rstrip()


def values(results: Results) -> dict[str, Any]:
    """Returns the results as JSON values; null for unknown numbers, "never" for infinite ones."""
    runs = [{"setting": s.name, **o._asdict()} for s in results.settings for o in s.outcomes]
    tables = results.by_threshold.values()
    whole = {
        "study": results.study.values(),
        "metric": results.metric,
        "findings": findings.sentences(results),
        "summaries": [vars(r) for rows in tables for r in rows],
        "runs": runs,
    }
    return json.loads(json.dumps(whole), parse_constant={"NaN": None, "Infinity": NEVER}.get)


COLUMNS: dict[str, Callable[[Outcome], Any]] = {
    "seed": lambda run: run.seed,
    "status": lambda run: run.status,
    "reached": lambda run: int(run.row_at(run.goal) is not None),
    "epoch": lambda run: run.rows[-1]["epoch"] if run.rows else None,
    "score": lambda run: run.rows[-1][run.metric] if run.rows else None,
    "seconds": lambda run: round(run.seconds, 3),
    "evaluation": lambda run: round(run.clock.get("eval", 0.0), 3),
    "reason": lambda run: run.reason,
}


def write_csv(studies: Sequence[Results], file: TextIO) -> None:
    """Writes a CSV row for each run, with the figures of its last evaluation."""
    # Columns: the study, one for each factor with the level's label, and COLUMNS.
    factors = dict.fromkeys(factor.name for r in studies for factor in r.study.factors)
    writer = csv.writer(file)
    writer.writerow(map(defused, ("study", *factors, *COLUMNS)))
    for results in studies:
        names = [factor.name for factor in results.study.factors]
        for setting in results.settings:
            levels = dict(zip(names, setting.labels, strict=True))
            first = (results.study.name, *(levels.get(name, "") for name in factors))
            for outcome in setting.outcomes:
                cells = (cell(outcome) for cell in COLUMNS.values())
                writer.writerow(map(defused, (*first, *cells)))


def write_page(path: Path, studies: Sequence[Results], comparison: list[str]) -> None:
    """Writes the page of one study, or of two with lines that compare them."""
    templates = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        finalize=lambda value: value if isinstance(value, Markup) else shown(value, "\n"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    text = templates.get_template("report.html").render(
        studies=[_study_values(results) for results in studies],
        comparison=comparison,
        title=" and ".join(results.study.name for results in studies),
    )
    files.write_whole(path, text)


def _study_values(results: Results) -> dict[str, Any]:
    facts = [o.facts for setting in results.settings for o in setting.outcomes]
    missed = summaries.misses(results.settings, results.thresholds[-1])
    return {
        "study": results.study,
        "metric": results.metric,
        "findings": findings.sentences(results),
        "figure": render_svg(results),
        "tables": [(t, *tabulate(results.by_threshold[t])) for t in results.thresholds],
        "misses": missed[:MOST_ROWS],
        "more_misses": max(0, len(missed) - MOST_ROWS),
        "hardware": sorted({run["hardware"] for run in facts if "hardware" in run}),
        "framework": sorted({run["framework"] for run in facts if "framework" in run}),
        "planned": results.planned,
        "runs": len(facts),
    }


def render_svg(results: Results) -> Markup:
    """Renders the study's figure as inline SVG."""
    text = io.StringIO()
    files.save_figure(figures.draw(results), text, format="svg", metadata={"Date": None})
    return Markup(text.getvalue()[text.getvalue().index("<svg") :])


def tabulate(rows: Sequence[Summary]) -> tuple[list[str], list[list[str]]]:
    """Returns the headings and the cells of each row; leaves out columns without any value."""
    columns = [
        (head, [_cell(row, name, form) for row in rows]) for head, name, form in PAGE_COLUMNS
    ]
    headings, cells = zip(*(column for column in columns if any(column[1])), strict=True)
    return list(headings), [list(row) for row in zip(*cells, strict=True)]


def _cell(row: Summary, name: str, form: str | Callable[[Any], str]) -> str:
    value = getattr(row, name)
    if name == "reached":
        return f"{row.reached} of {row.runs}"
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    return format(value, form) if isinstance(form, str) else form(value)


# Columns of the text -> width, beside a space before each.
IN_TEXT = {"reached": 10, "median time": 16, "speed-up": 8, "epochs": 7, "USD": 9}
# Heading, name of the statistic in a summary, and format or function that formats it.
PAGE_COLUMNS: tuple[tuple[str, str, str | Callable[[Any], str]], ...] = (
    ("setting", "setting", ""),
    ("reached", "reached", ""),
    ("95 %", "share", lambda share: f"{100 * share[0]:.0f} to {100 * share[1]:.0f} %"),
    ("median time", "middle_seconds", findings.format_median),
    ("95 %", "median_interval", lambda times: time_statistics.format_ends(times, in_units)),
    ("mean time", "mean_seconds", in_units),
    ("variation", "variation", ".1%"),
    ("epochs", "epochs", ".3g"),
    ("best score", "best_mean", ".4g"),
    ("sd", "best_sd", ".2g"),
    ("USD", "usd", terminal.dollars),
    ("speed-up", "speed_up", ".2f"),
    ("P(faster)", "faster", ".2f"),
    ("examples/s", "examples_per_second", ",.0f"),
    ("of peak", "share_of_peak", ".1%"),
    ("input wait", "input_wait", ".1%"),
    ("communication", "communication", ".1%"),
    ("GiB", "process_gib", ".2f"),
    ("J", "joules", ",.4g"),
)


def compare_studies(ours: Results, theirs: Results, names: Sequence[str]) -> list[str]:
    """Compares the second study with the first: a line for each shared threshold and setting."""
    both = f"report: {ours.study.name} and {theirs.study.name} have no"
    shared = [t for t in ours.thresholds if t in theirs.thresholds]
    # As planned: a task of one's own has the name of its data.
    tasks = [grid.plan(r.study)[0].recipe.whole_task.name for r in (ours, theirs)]
    if tasks[0] != tasks[1] or not shared:
        text = "task and threshold in common; compare studies of one task at one threshold"
        raise Refusal(f"{both} {text}")
    others = {(s.factors, s.labels): s for s in theirs.settings}
    pairs = [(s, others[key]) for s in ours.settings if (key := (s.factors, s.labels)) in others]
    if len(ours.settings) == len(theirs.settings) == 1:
        pairs = [(ours.settings[0], theirs.settings[0])]
    if not pairs:
        raise Refusal(f"{both} setting in common")
    return [_compare_setting(pair, names, ours.metric, t) for t in shared for pair in pairs]


def _compare_setting(
    pair: tuple[Setting, Setting], names: Sequence[str], metric: str, threshold: float
) -> str:
    first, second = (setting.times(threshold) for setting in pair)
    setting = f"{pair[0].name}: " if pair[0].name != "baseline" else ""
    times_text = " and ".join(
        f"{name} {findings.format_median(time_statistics.middle(times))} "
        f"({len(times.reached)} of {len(times.seconds)} runs)"
        for name, times in zip(names, (first, second), strict=True)
    )
    text = f"{setting}to {metric} {threshold:g}, {times_text}."
    if min(first.finished, second.finished) < time_statistics.ENOUGH:
        return f"{text} {findings.TOO_FEW}."
    versus = time_statistics.compare(second, first)
    if versus.speed_up:
        text += f" {names[1]} is {versus.speed_up:.2f} times as fast"
        text += f"{time_statistics.format_interval(versus.speed_up_interval)}."
    text += f" A run of {names[1]} takes less time with probability {versus.faster:.2f}"
    return f"{text}, {time_statistics.certainty(versus)}."
