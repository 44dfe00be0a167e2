"""Ranks results: DAWNBench's twelve tables, with runs of your own marked where they would stand.

    python -m dawnbench_tf.leaderboard                     # what was published, 2017 to 2020
    python -m dawnbench_tf.leaderboard RUN_DIR --dataset=CIFAR10 --top=5
    python -m dawnbench_tf.leaderboard RUN_DIR --html=DIR --plot=FILE.png

Exit status: 0, or 1 for bad input.
"""

import csv
import datetime
import json
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

from absl import app, flags

from dawnbench_tf import options, rankings, results, tasks
from dawnbench_tf.entry_source import shown
from dawnbench_tf.rankings import Table
from dawnbench_tf.results import Result
from dawnbench_tf.settings import Refusal, refuse


def text(table: Table, top: int) -> str:
    """A table's first `top` rows, and each row of yours below them, with its rank."""
    _, _, figure, written = table.figure
    lines = [f"{table.dataset}, {table.figure.name}"]
    for rank, row in enumerate(table.rows, 1):
        if rank <= top or row.mine:
            mark = "*" if row.mine else " "
            cells = f"{written(figure(row)):>12}  {row.model[:34]:34}  {row.hardware[:40]:40}"
            lines.append(f"{mark}{rank:4}  {cells}  {row.date}  {row.author[:30]}")
    lines += [
        f"  your {row.name} would rank {rank} of {len(table.rows)}"
        for rank, row in enumerate(table.rows, 1)
        if row.mine
    ]
    return "\n".join(lines)


def collect(folders: list[Path]) -> list[Result]:
    """Published results, and those of the folders marked as yours.

    Raises Refusal for a folder that holds none.
    """
    found = results.published()
    known = {(it.dataset, it.kind, it.name) for it in found}
    for folder in folders:
        read, problems = results.read_tree(folder)
        for line in problems:
            print(f"left out: {line}", file=sys.stderr)
        if not read:
            why = "holds no entry; should hold DATASET/train/NAME.json or such"
            raise Refusal(f"{shown(folder)}: {why}")
        new = [it for it in read if (it.dataset, it.kind, it.name) not in known]
        found += [replace(it, mine=True) for it in new]
    return found


def chosen(found: list[Result], dataset: str | None, until: str, threshold: float | None):
    """Those of a data set and time, at a threshold: an inference entry below it is left out."""
    found = [it for it in found if dataset in (None, it.dataset) and it.date <= until]
    if threshold is None:
        return found
    return [
        results.at(it, threshold)
        for it in found
        if it.kind == "train" or it.metric is None or it.metric >= threshold
    ]


def define() -> None:
    """Defines the command's flags."""
    here = {"module_name": sys.argv[0]}
    flags.DEFINE_enum("dataset", None, list(tasks.RANKED), "show only this one's tables", **here)
    flags.DEFINE_integer("top", 10, "rows of each table", lower_bound=1, **here)
    flags.DEFINE_string("until", "", "only entries of this date or before, YYYY-MM-DD", **here)
    flags.DEFINE_float("threshold", None, "rank at this threshold of --dataset", **here)
    flags.DEFINE_bool("json", False, "print all tables as JSON", **here)
    flags.DEFINE_bool("csv", False, "print all tables as CSV", **here)
    flags.DEFINE_string("html", "", "folder to write the tables to, as pages for a browser", **here)
    flags.DEFINE_string(
        "plot",
        "",
        "file for a picture, .png, .svg or .pdf: time and cost, accuracy over time",
        **here,
    )


def main(argv):
    options.end_quietly()
    values = flags.FLAGS
    try:
        until = _date(values.until)
        if values.threshold is not None and not values.dataset:
            refuse("threshold", values.threshold, "needs --dataset, as each has its own metric")
        found = collect([Path(name) for name in argv[1:]])
        found = chosen(found, values.dataset, until, values.threshold)
        made = rankings.tables(found)
        if not made:
            raise Refusal("no entry is left to rank; ask for a later --until or lower --threshold")
        if values.html:
            from dawnbench_tf import pages

            print(pages.write(Path(values.html), made, found))
        if values.plot:
            from dawnbench_tf import plots

            plots.results(found, Path(values.plot))
            print(values.plot)
    except Refusal as refusal:
        options.exit_with(str(refusal))
    if values.json:
        print(json.dumps(_plain(made), indent=1, ensure_ascii=False))
    elif values.csv:
        _write_csv(made)
    elif not values.html and not values.plot:
        print("\n\n".join(text(table, values.top) for table in made))


def _date(text):
    """A date as entries have it; the last there is if none is given."""
    try:
        return datetime.date.fromisoformat(text or "9999-12-31").isoformat()
    except ValueError:
        refuse("until", text, "should be a date, YYYY-MM-DD")


def _facts(row):
    return {name: getattr(row, name) for name in (*results.columns(), "mine")}


def _plain(made):
    return [
        {
            "dataset": table.dataset,
            "table": table.figure.name,
            "rows": [
                {"rank": rank, "figure": table.figure.of(row), **_facts(row)}
                for rank, row in enumerate(table.rows, 1)
            ],
        }
        for table in made
    ]


def _write_csv(made):
    writer = csv.writer(sys.stdout)
    writer.writerow(["table", "rank", "figure", *results.columns(), "mine"])
    for table in made:
        for rank, row in enumerate(table.rows, 1):
            cells = map(_defused, _facts(row).values())
            writer.writerow([table.figure.name, rank, table.figure.of(row), *cells])


def _defused(cell):
    """Text that a spreadsheet would run as a formula, made plain."""
    return f"'{cell}" if isinstance(cell, str) and cell.lstrip()[:1] in tuple("=+-@") else cell


if __name__ == "__main__":
    define()
    app.run(main, flags_parser=partial(options.parse, files=True))
