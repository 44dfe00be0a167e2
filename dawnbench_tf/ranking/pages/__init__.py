"""Leaderboards as self-contained HTML pages that load nothing from the network.

Entries are untrusted text: templates escape all of it, links are http or https only, e-mail
addresses are removed, and a content security policy allows only the package's own script.

May import: ranking, the shared modules. Never: TensorFlow, data, training, inference.
"""

import base64
import hashlib
import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from dawnbench_tf import files
from dawnbench_tf.ranking import plots
from dawnbench_tf.ranking.results import Result
from dawnbench_tf.ranking.tables import Table, format_hours
from dawnbench_tf.refusals import Refusal

HERE = Path(__file__).parent
MOST_POINTS = 60  # points of a curve in the comparison, at most
_ADDRESS = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,64}(\.[\w-]{1,64}){1,9}")


def write(folder: Path, tables: list[Table], results: list[Result]) -> Path:
    """Writes index.html, whose path it returns, compare.html and entries/. Raises Refusal."""
    templates = _templates()
    unranked = [result for result in results if result.reasons and result.mine]
    results = [result for result in results if not result.reasons]
    links = _links(results)
    # Of each result: name of the table, rank, number of ranked results, figure.
    standings = defaultdict[Result, list[tuple[str, int, int, str]]](list)
    for table in tables:
        for rank, row in enumerate(table.rows, 1):
            written = table.figure.format(table.figure.value(row))
            standings[row].append((table.figure.name, rank, len(table.rows), written))
    if (folder / "entries").is_symlink():
        raise Refusal(f"{folder / 'entries'}: is a link; should be a folder: remove the link")
    files.make_folder(folder / "entries")
    page = templates.get_template("entry.html")
    comparable = {}  # what the script of the pages draws and compares, by the name of a page
    for result in results:
        step = -(-len(result.curve) // MOST_POINTS) or 1
        curve = [(round(hours, 6), round(score, 4)) for hours, score in result.curve]
        facts = ("dataset", "phase", "model", "framework", "hardware", "author", "date")
        comparable[links[result]] = {
            **{name: _ADDRESS.sub("", getattr(result, name)) for name in facts},
            "figures": {name: written for name, _, _, written in standings[result]},
            "metric": result.task.metric,
            "threshold": result.task.threshold,
            "curve": [*curve[:-1:step], *curve[-1:]],
            "hit": None if result.hours is None else (result.hours, result.score),
        }
        text = page.render(
            result=result,
            standings=standings[result],
            best=max((score for _, score in result.curve), default=None),
            task=result.task,
            id=links[result],
            data=comparable[links[result]],
            root="../",
        )
        files.write_whole(folder / "entries" / f"{links[result]}.html", text, durable=False)
    sections = defaultdict(list)
    for table in tables:
        sections[table.task].append((table, plots.record_chart(table)))
    index = templates.get_template("index.html").render(
        sections=sections, links=links, count=len(results), unranked=unranked, root=""
    )
    compare = templates.get_template("compare.html").render(
        results=results, links=links, data=comparable, root=""
    )
    files.write_whole(folder / "compare.html", compare)
    files.write_whole(folder / "index.html", index)
    return folder / "index.html"


def _templates() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["public"] = lambda text: _ADDRESS.sub("(address left out)", text)
    environment.filters["duration"] = format_hours
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    for name, file in (("style", "style.css"), ("script", "site.js")):
        text = (HERE / file).read_text(encoding="utf-8")
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        environment.globals[name] = Markup(text), f"'sha256-{digest}'"  # for the security policy
    return environment


def _links(results: list[Result]) -> dict[Result, str]:
    """Returns result -> name of its page's file: unique regardless of case, safe in a URL."""
    taken: set[str] = set()
    numbers = defaultdict[str, Iterator[int]](lambda: count(1))  # not yet tried, of a stem
    links = {}
    for result in results:
        name = f"{result.dataset}-{result.phase}-{result.name[:200]}"
        stem = re.sub(r"[^A-Za-z0-9.-]+", "-", name)[:100].strip("-.")
        names = (stem if n == 1 else f"{stem}-{n}" for n in numbers[stem.lower()])
        name = next(name for name in names if name.lower() not in taken)
        taken.add(name.lower())
        links[result] = name
    return links
