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
    """Writes the page of one study, or of two side by side.

    Args:
      path: the HTML file.
      studies: one or two, each with at least one ended run.
      comparison: lines that compare the two; [] for one study.

    Raises:
      Refusal: the page can't be written.
    """
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
    study = results.study
    newest = [o.facts for setting in results.settings for o in setting.outcomes if o.facts]
    missed = summaries.misses(results.settings, results.thresholds[-1])
    return {
        "study": study,
        "metric": results.metric,
        "findings": findings.sentences(results),
        "figure": render_svg(results),
        "tables": [(t, *tabulate(results.by_threshold[t])) for t in results.thresholds],
        "misses": missed[:MOST_ROWS],
        "more_misses": max(0, len(missed) - MOST_ROWS),
        "hardware": sorted({facts["hardware"] for facts in newest if "hardware" in facts}),
        "framework": sorted({facts["framework"] for facts in newest if "framework" in facts}),
        "planned": results.planned,
        "runs": sum(len(setting.outcomes) for setting in results.settings),
        "settings": {**study.settings},
        "factors": [
            (factor.name, [(level.label or "", dict(level.settings)) for level in factor.levels])
            for factor in study.factors
        ],
    }


def render_svg(results: Results) -> Markup:
    """Renders the study's figure as inline SVG."""
    text = io.StringIO()
    figures.draw(results).savefig(text, format="svg", metadata={"Date": None})
    return Markup(text.getvalue()[text.getvalue().index("<svg") :])


def tabulate(rows: Sequence[Summary]) -> tuple[list[str], list[list[str]]]:
    """Returns the headings and the cells of each row; leaves out columns without any value."""
    columns = [(heading, [text(row) for row in rows]) for heading, text in COLUMNS]
    columns = [(heading, cells) for heading, cells in columns if any(cells)]
    headings, cells = zip(*columns, strict=True)
    return list(headings), [list(row) for row in zip(*cells, strict=True)]


def format_cell(value: float | None, form: str = ".3g") -> str:
    """Formats a figure of a table; "" if it is unknown or infinite.

    >>> format_cell(None), format_cell(float("inf")), format_cell(0.12345)
    ('', '', '0.123')
    >>> format_cell(0.031, ".1%")
    '3.1%'
    """
    return "" if value is None or math.isinf(value) else format(value, form)


def _interval(limits: Interval | None) -> str:
    return " to ".join(map(findings.format_seconds, limits)) if limits else ""


def _median(row: Summary) -> str:
    if math.isinf(row.middle_seconds[0]):
        return "did not converge"
    return findings.format_median(row.middle_seconds)


COLUMNS: tuple[tuple[str, Callable[[Summary], str]], ...] = (
    ("setting", lambda row: row.setting),
    ("reached", lambda row: f"{row.reached} of {row.runs}"),
    ("95 %", lambda row: f"{100 * row.share[0]:.0f} to {100 * row.share[1]:.0f} %"),
    ("median time", _median),
    ("95 %", lambda row: _interval(row.median_interval)),
    (
        "mean time",
        lambda row: "" if row.mean_seconds is None else findings.format_seconds(row.mean_seconds),
    ),
    ("variation", lambda row: format_cell(row.variation, ".1%")),
    ("epochs", lambda row: format_cell(row.epochs)),
    ("best score", lambda row: format_cell(row.best_mean, ".4g")),
    ("sd", lambda row: format_cell(row.best_sd, ".2f")),
    ("USD", lambda row: format_cell(row.usd, ".4g")),
    ("speed-up", lambda row: format_cell(row.speed_up, ".2f")),
    ("P(faster)", lambda row: format_cell(row.faster, ".2f")),
    ("examples/s", lambda row: format_cell(row.examples_per_second, ",.0f")),
    ("of peak", lambda row: format_cell(row.share_of_peak, ".1%")),
    ("input wait", lambda row: format_cell(row.input_wait, ".1%")),
    ("communication", lambda row: format_cell(row.communication, ".1%")),
    ("GiB", lambda row: format_cell(row.process_gib, ".2f")),
    ("J", lambda row: format_cell(row.joules, ",.4g")),
)
