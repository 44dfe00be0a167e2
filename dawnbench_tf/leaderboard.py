"""Ranks results: DAWNBench's twelve tables, with runs of your own marked where they would stand.

    python -m dawnbench_tf.leaderboard                     # what was published, 2017 to 2020
    python -m dawnbench_tf.leaderboard RUN_DIR --dataset=CIFAR10 --top=5
    python -m dawnbench_tf.leaderboard RUN_DIR --html=DIR --plot=FILE.png

What the rules refuse is in no table, and listed below them with the reasons. Exit status: 0, or 1
for bad input.
"""

import csv
import datetime
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from dawnbench_tf import flags, terminal
from dawnbench_tf.ranking import results, tables
from dawnbench_tf.ranking.results import Result
from dawnbench_tf.ranking.tables import Table
from dawnbench_tf.refusals import Refusal, defused, refuse, shown
from dawnbench_tf.settings import check, setting
from dawnbench_tf.tasks import RANKED

__all__ = ["rank", "Ranking", "text"]

COLUMNS = 120  # of a table where no terminal shows it
SHARES = (34, 40, 30)  # of a line's width: model, hardware, author


@dataclass(frozen=True)
class Options:
    """What is ranked, and how it is shown."""

    dataset: str = setting("", "show only this one's tables", choices=("", *RANKED))
    top: int = setting(10, "rows of each table", low=1)
    until: str = setting("", "only entries of this date or before, YYYY-MM-DD")
    threshold: float | None = setting(
        None, "rank at this threshold of --dataset, or of the runs given", above=0
    )
    json: bool = setting(False, "print all tables as JSON")
    csv: bool = setting(False, "print all tables as CSV")
    html: str = setting("", "folder to write the tables to, as pages for a browser")
    plot: str = setting(
        "", "file for a picture, .png, .svg or .pdf: time and cost, accuracy over time"
    )

    def __post_init__(self):
        check(self)


def text(table: Table, top: int, columns: int = COLUMNS) -> str:
    """A table's first `top` rows, and each row of yours below them, with its rank.

    Args:
      table: whose rows are shown.
      top: how many of the first.
      columns: that a line may take; texts are cut to it.
    """
    figure, written = table.figure.of, table.figure.written
    line = partial(_line, columns=columns)
    heads = ("model", "hardware", "author, or your folder")
    lines = [f"{table.dataset}, {table.figure.name}"]
    lines.append(line(" rank", table.figure.name.partition(" of ")[0].split()[-1], "date", heads))
    for rank, row in enumerate(table.rows, 1):
        if rank <= top or row.mine:
            mark = "*" if row.mine else " "
            cells = (row.model, row.hardware, row.folder if row.mine else row.author)
            lines.append(line(f"{mark}{rank:4}", written(figure(row)), row.date, cells))
    lines += [
        f"  your {row.name} in {row.folder} would rank {rank} of {len(table.rows)}"
        for rank, row in enumerate(table.rows, 1)
        if row.mine
    ]
    return "\n".join(lines)


def _line(rank, figure, date, cells, columns):
    """A line of a table; what of the columns the other cells leave is shared by three texts."""
    left = columns - len(f"{rank}  {figure:>12}  {date:10}      ")
    widths = [max(4, left * share // sum(SHARES)) for share in SHARES]
    texts = [terminal.cut(cell, width) for cell, width in zip(cells, widths, strict=True)]
    padding = [" " * (n - sum(map(terminal.width, t))) for t, n in zip(texts, widths, strict=True)]
    model, hardware, author = (f"{t}{space}" for t, space in zip(texts, padding, strict=True))
    return f"{rank}  {figure:>12}  {model}  {hardware}  {date:10}  {author}".rstrip()


def collect(folders: list[Path]) -> list[Result]:
    """Published results, and those of the folders marked as yours.

    Raises:
      Refusal: a folder holds none.
    """
    collected = results.published()
    published = {_identity(result) for result in collected}
    files = set()
    for folder in folders:
        of_folder, problems = results.read_tree(folder, misses=True)
        for line in problems:
            terminal.say(f"left out: {line}")
        if not of_folder and not problems:
            why = "holds no entry; should hold DATASET/train/NAME.json or such"
            raise Refusal(f"{shown(folder)}: {why}")
        new = [r for r in of_folder if _identity(r) not in published]
        if len(new) < len(of_folder):
            count = len(of_folder) - len(new)
            terminal.say(f"left out: {count} of {shown(folder)}, published and ranked already")
        for result in new:
            file = os.path.realpath(result.file)
            if file not in files:  # of a folder that is named twice
                files.add(file)
                collected.append(replace(result, mine=True))
    return collected


def _identity(result):
    """All that a result states: what two entries of one name differ in."""
    return tuple(getattr(result, name) for name in results.columns())


def chosen(
    collected: list[Result], dataset: str, until: str, threshold: float | None
) -> list[Result]:
    """Those of a data set and time, at a threshold if one is given."""
    wanted = [r for r in collected if dataset in ("", r.dataset) and r.date <= until]
    return wanted if threshold is None else [results.at(result, threshold) for result in wanted]


def _dataset(dataset, threshold, collected):
    """The data set that is shown: with a threshold, that of the runs given if none is named."""
    if dataset not in ("", *RANKED):
        refuse("dataset", dataset, f"should be one of {', '.join(RANKED)}")
    if threshold is not None:
        of_mine = {result.dataset for result in collected if result.mine}
        if not dataset and len(of_mine) == 1:
            dataset = of_mine.pop()
        if not dataset:
            refuse("threshold", threshold, "needs --dataset, as each has its own metric")
        if threshold > RANKED[dataset].highest:
            metric, highest = RANKED[dataset].metric, RANKED[dataset].highest
            refuse("threshold", threshold, f"{metric} is at most {highest:g}")
    return dataset


def not_ranked(unranked: list[Result]) -> str:
    """Your entries that are in no table, each with the reasons."""
    lines = [
        f"  your {row.name} in {row.folder}, {row.dataset} {row.phase}: {'; '.join(row.reasons)}"
        for row in unranked
    ]
    return "\n".join(["not ranked", *lines])


class Ranking(NamedTuple):
    """Published entries and yours, ranked.

    Attributes:
      tables: DAWNBench's tables, and those of embedded tasks.
      unranked: results of yours that the rules keep out of the tables; `reasons` says why.
      results: all results that were considered.
    """

    tables: list[Table]
    unranked: list[Result]
    results: list[Result]


def rank(
    folders: Sequence[str | os.PathLike[str]] = (),
    dataset: str = "",
    until: str = "",
    threshold: float | None = None,
) -> Ranking:
    """Ranks the 118 published entries together with entries of yours.

    >>> best = rank(dataset="CIFAR10").tables[0].rows[0]
    >>> best.model, round(best.hours * 3600, 1)
    ('ResNet-9', 9.4)

    Args:
      folders: folders of runs, or trees of entries.
      dataset: only this data set's tables: "CIFAR10", "ImageNet", "SQuAD", ...; "": all.
      until: only entries of this date or before, YYYY-MM-DD; "": all.
      threshold: rank by the time to this score, in the data set's metric, in place of the
        benchmark's own. Without `dataset` the data set is that of the folders' entries.

    Raises:
      Refusal: a folder holds no entry, an argument is out of range, or no entry is left.
    """
    collected = collect([Path(folder) for folder in folders])
    dataset = _dataset(dataset, threshold, collected)
    wanted = chosen(collected, dataset, _date(until), threshold)
    ranking = Ranking(tables.rank(wanted), [r for r in wanted if r.reasons and r.mine], wanted)
    if not ranking.tables and not ranking.unranked:
        raise Refusal("no entry is left to rank; ask for a later --until or lower --threshold")
    return ranking


def main(arguments: list[str]) -> None:
    terminal.end_quietly()
    try:
        options = flags.read(Options)
        ranking = rank(arguments, options.dataset, options.until, options.threshold)
        if options.html:
            from dawnbench_tf.ranking import pages  # takes half a second, as do plots

            print(pages.write(Path(options.html), ranking.tables, ranking.results))
        if options.plot:
            from dawnbench_tf.ranking import plots

            plots.draw(ranking.results, Path(options.plot))
            print(options.plot)
        if options.json:
            print(json.dumps(_plain(ranking), indent=1))
        elif options.csv:
            _write_csv(ranking)
        elif not options.html and not options.plot:
            columns = COLUMNS
            if terminal.is_terminal(sys.stdout):
                columns = terminal.columns(sys.stdout)
            parts = [text(table, options.top, columns) for table in ranking.tables]
            parts += [not_ranked(ranking.unranked)] if ranking.unranked else []
            print("\n\n".join(parts))
        sys.stdout.flush()
    except Refusal as refusal:
        terminal.exit_with(str(refusal))
    except OSError as error:
        if error.filename:  # not stdout's
            raise
        terminal.exit_with(f"stdout can't be written ({error.strerror})", at_once=True)


def _date(text):
    """A date as entries have it; the last there is if none is given."""
    try:
        return datetime.date.fromisoformat(text or "9999-12-31").isoformat()
    except ValueError:
        refuse("until", text, "should be a date, YYYY-MM-DD")


def _facts(row):
    return {name: getattr(row, name) for name in (*results.columns(), "mine")}


def _plain(ranking):
    ranked = [
        {
            "dataset": table.dataset,
            "table": table.figure.name,
            "rows": [
                {"rank": rank, "figure": table.figure.of(row), **_facts(row)}
                for rank, row in enumerate(table.rows, 1)
            ],
        }
        for table in ranking.tables
    ]
    datasets = dict.fromkeys(row.dataset for row in ranking.unranked)
    return ranked + [
        {
            "dataset": dataset,
            "table": "not ranked",
            "rows": [
                {**_facts(row), "reasons": list(row.reasons)}
                for row in ranking.unranked
                if row.dataset == dataset
            ],
        }
        for dataset in datasets
    ]


def _write_csv(ranking):
    writer = csv.writer(sys.stdout)
    writer.writerow(["table", "rank", "figure", *results.columns(), "mine", "reasons"])
    for table in ranking.tables:
        for rank, row in enumerate(table.rows, 1):
            cells = map(defused, _facts(row).values())
            writer.writerow([table.figure.name, rank, table.figure.of(row), *cells, ""])
    for row in ranking.unranked:
        cells = map(defused, _facts(row).values())
        writer.writerow(["not ranked", "", "", *cells, defused("; ".join(row.reasons))])


if __name__ == "__main__":
    flags.run(main, Options, files=True)
