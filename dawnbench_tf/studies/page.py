"""The report of a study as one HTML page that loads nothing from the network."""

import io
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from dawnbench_tf import files
from dawnbench_tf.studies import figures, findings, summaries
from dawnbench_tf.studies.estimates import Interval
from dawnbench_tf.studies.summaries import Results, Summary

HERE = Path(__file__).parent
MOST_ROWS = 200  # rows in the table of runs that missed their goal, at most


def write(path: Path, studies: Sequence[Results], comparison: list[str]) -> None:
    """Writes the page of one study, or of two with lines that compare them."""
    templates = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
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
    figures.draw(results).savefig(text, format="svg", metadata={"Date": None})
    return Markup(text.getvalue()[text.getvalue().index("<svg") :])


def tabulate(rows: Sequence[Summary]) -> tuple[list[str], list[list[str]]]:
    """Returns the headings and the cells of each row; leaves out columns without any value."""
    columns = [(head, [_cell(row, name, form) for row in rows]) for head, name, form in COLUMNS]
    headings, cells = zip(*(column for column in columns if any(column[1])), strict=True)
    return list(headings), [list(row) for row in zip(*cells, strict=True)]


def _cell(row: Summary, name: str, form: str | Callable[[Any], str]) -> str:
    value = getattr(row, name)
    if name == "reached":
        return f"{row.reached} of {row.runs}"
    if value is None or value == math.inf:
        return ""
    return format(value, form) if isinstance(form, str) else form(value)


def _format_median(middle: Interval) -> str:
    never = math.isinf(middle[0])
    return "did not converge" if never else findings.format_median(middle)


# Heading, name of the statistic in a summary, and format or function that formats it.
COLUMNS: tuple[tuple[str, str, str | Callable[[Any], str]], ...] = (
    ("setting", "setting", ""),
    ("reached", "reached", ""),
    ("95 %", "share", lambda share: f"{100 * share[0]:.0f} to {100 * share[1]:.0f} %"),
    ("median time", "middle_seconds", _format_median),
    ("95 %", "median_interval", lambda times: " to ".join(map(findings.format_seconds, times))),
    ("mean time", "mean_seconds", findings.format_seconds),
    ("variation", "variation", ".1%"),
    ("epochs", "epochs", ".3g"),
    ("best score", "best_mean", ".4g"),
    ("sd", "best_sd", ".2f"),
    ("USD", "usd", ".4g"),
    ("speed-up", "speed_up", ".2f"),
    ("P(faster)", "faster", ".2f"),
    ("examples/s", "examples_per_second", ",.0f"),
    ("of peak", "share_of_peak", ".1%"),
    ("input wait", "input_wait", ".1%"),
    ("communication", "communication", ".1%"),
    ("GiB", "process_gib", ".2f"),
    ("J", "joules", ",.4g"),
)
