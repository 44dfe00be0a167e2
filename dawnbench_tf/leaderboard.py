"""Ranks results: DAWNBench's twelve tables, with runs of your own marked where they would stand.

    python -m dawnbench_tf.leaderboard                     # what was published, 2017 to 2020
    python -m dawnbench_tf.leaderboard RUN_DIR --dataset=CIFAR10 --top=5

Exit status: 0, or 1 for bad input.
"""

import csv
import datetime
import json
import math
import sys
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from absl import app, flags

from dawnbench_tf import options, results, tasks
from dawnbench_tf.results import Result
from dawnbench_tf.settings import Refusal, refuse


class Table(NamedTuple):
    """A ranking: the best first."""

    dataset: str
    name: str  # of the figure, a key of FIGURES
    rows: list[Result]


def _hours(result):
    return result.hours if result.kind == "train" else None


def _training_usd(result):
    return result.usd if result.kind == "train" else None


def _latency(result):
    return result.latency if result.kind == "inference" else None


def _inference_usd(result):
    return None if result.kind == "train" or result.usd is None else result.usd * 10_000


def clock(hours: float) -> str:
    """Hours as h:mm:ss, seconds rounded up as DAWNBench's page does.

    >>> clock(0.3127), clock(10.0), clock(26 / 3600)
    ('0:18:46', '10:00:00', '0:00:26')
    """
    seconds = math.ceil(hours * 3600)
    return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


FIGURES = {  # name: figure of a result (None: not ranked), how it is written
    "training time": (_hours, clock),
    "training cost": (_training_usd, "${:,.2f}".format),
    "inference latency": (_latency, "{:,.4g} ms".format),
    "inference cost of 10,000": (_inference_usd, "${:,.4f}".format),
}


def tables(found: list[Result]) -> list[Table]:
    """All tables that hold a result; of equal figures the earlier date ranks first, then the name.

    Tables of the benchmark's data sets come first, those of embedded tasks after them.
    """
    made = []
    for dataset in tasks.RANKED:
        for name, (figure, _) in FIGURES.items():
            ranked = [it for it in found if it.dataset == dataset and figure(it) is not None]
            ranked.sort(key=lambda it, figure=figure: (figure(it), it.date, it.name))
            if ranked:
                made.append(Table(dataset, name, ranked))
    return made


def text(table: Table, top: int) -> str:
    """A table's first `top` rows, and each row of yours below them, with its rank."""
    figure, written = FIGURES[table.name]
    lines = [f"{table.dataset}, {table.name}"]
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


def define() -> None:
    """Defines the command's flags."""
    here = {"module_name": sys.argv[0]}
    flags.DEFINE_enum("dataset", None, list(tasks.RANKED), "show only this one's tables", **here)
    flags.DEFINE_integer("top", 10, "rows of each table", lower_bound=1, **here)
    flags.DEFINE_string("until", "", "only entries of this date or before, YYYY-MM-DD", **here)
    flags.DEFINE_float(
        "threshold",
        None,
        "rank training at this threshold of --dataset; needs the entry trees, as rows tell it",
        **here,
    )
    flags.DEFINE_bool("json", False, "print all tables as JSON", **here)
    flags.DEFINE_bool("csv", False, "print all tables as CSV", **here)


def main(argv):
    values = flags.FLAGS
    try:
        until = _date(values.until)
        found = _collect([Path(name) for name in argv[1:]], values.dataset, values.threshold)
    except Refusal as refusal:
        options.exit_with(str(refusal))
    found = [it for it in found if it.date <= until]
    made = [it for it in tables(found) if values.dataset in (None, it.dataset)]
    if values.json:
        print(json.dumps(_plain(made), indent=1, ensure_ascii=False))
    elif values.csv:
        _write_csv(made)
    else:
        print("\n\n".join(text(table, values.top) for table in made))


def _date(text):
    """A date as entries have it; the last there is if none is given."""
    try:
        return datetime.date.fromisoformat(text or "9999-12-31").isoformat()
    except ValueError:
        refuse("until", text, "should be a date, YYYY-MM-DD")


def _collect(folders, dataset, threshold):
    """Published results and those of the folders; the latter alone if another threshold is set."""
    if threshold is not None and not (dataset and folders):
        refuse("threshold", threshold, "needs --dataset, and the folder of an entry tree")
    thresholds = {} if threshold is None else {dataset: threshold}
    found = [] if thresholds else results.published()
    known = {(it.dataset, it.kind, it.name) for it in found}
    for folder in folders:
        read, problems = results.read_tree(folder, thresholds)
        for line in problems:
            print(f"left out: {line}", file=sys.stderr)
        if not read:
            raise Refusal(f"{folder}: holds no entry; should hold DATASET/train/NAME.json or such")
        new = [it for it in read if (it.dataset, it.kind, it.name) not in known]
        found += [replace(it, mine=not thresholds) for it in new]
    return found


def _plain(made):
    return [
        {
            "dataset": table.dataset,
            "table": table.name,
            "rows": [
                {"rank": rank, "figure": FIGURES[table.name][0](row), **asdict(row)}
                for rank, row in enumerate(table.rows, 1)
            ],
        }
        for table in made
    ]


def _write_csv(made):
    writer = csv.writer(sys.stdout)
    writer.writerow(["dataset", "table", "rank", "figure", *results.columns(), "mine"])
    for table in made:
        for rank, row in enumerate(table.rows, 1):
            cells = map(_defused, asdict(row).values())
            writer.writerow([table.dataset, table.name, rank, FIGURES[table.name][0](row), *cells])


def _defused(cell):
    """Text that a spreadsheet would run as a formula, made plain."""
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in "=+-@\t\r" and cell else cell


if __name__ == "__main__":
    define()
    app.run(main, flags_parser=partial(options.parse, files=True))
