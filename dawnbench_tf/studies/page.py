"""A study's report: one HTML page that asks nothing of the network."""

import io
import math
from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from dawnbench_tf import files
from dawnbench_tf.studies import figures, findings, grid, summaries
from dawnbench_tf.studies.figures import Results

HERE = Path(__file__).parent
MOST_ROWS = 200  # of the table of runs that did not reach their goal


def write(path: Path, studies: Sequence[Results], comparison: list[str]) -> None:
    """Writes the page of one study, or of two side by side.

    Args:
      path: of the page.
      studies: each with at least one run.
      comparison: what the two are to each other, in sentences.

    Raises:
      Refusal: it can't be written.
    """
    templates = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    text = templates.get_template("report.html").render(
        studies=[_of_study(results) for results in studies],
        comparison=comparison,
        title=" and ".join(results.study.name for results in studies),
        cell=cell,
        interval=interval,
        seconds=findings.seconds,
    )
    files.write_whole(path, text)


def _of_study(results):
    study = results.study
    newest = [o.facts for setting in results.settings for o in setting.outcomes if o.facts]
    missed = summaries.misses(results.settings)
    return {
        "study": study,
        "metric": results.metric,
        "findings": findings.sentences(results),
        "figure": svg(results),
        "tables": [(t, results.by_threshold[t]) for t in results.thresholds],
        "misses": missed[:MOST_ROWS],
        "more_misses": max(0, len(missed) - MOST_ROWS),
        "hardware": sorted({facts["hardware"] for facts in newest if "hardware" in facts}),
        "framework": sorted({facts["framework"] for facts in newest if "framework" in facts}),
        "planned": len(grid.plan(study)),
        "runs": sum(len(setting.outcomes) for setting in results.settings),
        "settings": {**study.settings},
        "factors": [
            (factor.name, [(level.label or "", dict(level.settings)) for level in factor.levels])
            for factor in study.factors
        ],
    }


def svg(results: Results) -> Markup:
    """The figure as SVG to stand in a page."""
    text = io.StringIO()
    figures.draw(results).savefig(text, format="svg", metadata={"Date": None})
    return Markup(text.getvalue()[text.getvalue().index("<svg") :])  # noqa: S704 - matplotlib's


def cell(value: float | None, form: str = ".3g") -> str:
    """A figure of a table: "-" if it is not known.

    >>> cell(None), cell(0.12345), cell(float("inf")), cell(0.031, ".1%")
    ('-', '0.123', 'never', '3.1%')
    """
    if value is None:
        return "-"
    return "never" if math.isinf(value) else format(value, form)


def interval(limits: tuple[float, float] | None) -> str:
    """An interval of seconds: "" if there is none."""
    if limits is None:
        return ""
    low, high = limits
    return f"{findings.seconds(low)} to {findings.seconds(high)}"
