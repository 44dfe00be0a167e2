"""Ranks your runs among the entries that DAWNBench published.

    dawnbench leaderboard                     # published entries, 2017 to 2020
    dawnbench leaderboard RUN_DIR --dataset=CIFAR10 --top=5
    dawnbench leaderboard RUN_DIR --html=DIR --plot=FILE.png
    dawnbench leaderboard RUN_DIR fastai_pytorch --curve=FILE.png

Tables with runs of yours come first, then your runs that break the rules, with
the reasons.
Exit status: 0, or 1 for bad input.
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
from typing import Any, NamedTuple

from dawnbench_tf import files, flags, terminal
from dawnbench_tf.ranking import results, tables
from dawnbench_tf.ranking.results import Result
from dawnbench_tf.ranking.tables import Table
from dawnbench_tf.recipe.evidence import published_entries
from dawnbench_tf.refusals import Refusal, defused, refuse, shown, suggestion
from dawnbench_tf.settings import Checked, setting
from dawnbench_tf.tasks import RANKED

__all__ = ["rank", "Ranking", "format_ranking", "draw_curves"]

FACTS = (*results.columns(), "stated", "recipe", "mine", "file")  # of a row of --json and --csv
COLUMNS = 120  # width of a table if stdout is no terminal, in characters
SHARES = (27, 28, 21)  # relative widths of model, hardware, author
LONGEST = 26  # characters of a recipe's name; a longer one is cut
NARROW = 100  # columns below which only rows of yours have hardware and folder


@dataclass(frozen=True)
class Options(Checked):
    """Flags of `dawnbench leaderboard`: which entries are ranked, and the output."""

    dataset: str = setting(
        "",
        f"show only the tables of this data set: {', '.join(RANKED)}, or a task of your own; "
        "default: all",
    )
    top: int = setting(10, "rows of each table, and of your own below them", low=1)
    until: str = setting("", "only entries of this date or earlier, YYYY-MM-DD")
    threshold: float | None = setting(
        None,
        "rank at another threshold, in the metric of --dataset or of your runs' data set",
        above=0,
    )
    json: bool = setting(False, "print all tables as JSON")
    csv: bool = setting(False, "print all tables as CSV")
    html: str = setting("", "folder to write the tables to as HTML pages")
    plot: str = setting("", "file for a plot of cost and accuracy over time, .png, .svg or .pdf")
    curve: str = setting(
        "",
        "file for a plot of accuracy over time, .png, .svg or .pdf. The arguments name the runs "
        "and the published entries in it; no table is printed",
    )


def format_ranking(table: Table, top: int, columns: int = COLUMNS) -> str:
    """Formats the first `top` rows of a table and, below them, your first `top` other rows.

    Args:
      table: the ranking.
      top: number of rows.
      columns: width of a line in characters; longer texts are cut.
    """
    value, format_value = table.figure.value, table.figure.format
    line = partial(_line, columns=columns)
    heads = ("model", "hardware", "recipe or network", "author, or your folder")
    lines = [terminal.cut(f"{table.title}, {table.figure.name}", columns)]
    lines.append(line(" rank", table.figure.name.partition(" of ")[0].split()[-1], "date", heads))
    ranked = list(enumerate(table.rows, 1))
    below = [(rank, row) for rank, row in ranked[top:] if row.mine]
    shown = [*ranked[:top], *below[:top]]
    for rank, row in shown:
        mark = "*" if row.mine else " "
        cells = (row.model, row.hardware, row.label, row.folder if row.mine else row.author)
        lines.append(line(f"{mark}{rank:4}", format_value(value(row)), row.date, cells))
        if row.mine and columns < NARROW:
            lines.append(terminal.cut(f"{'':21}{row.folder}, {row.hardware}", columns))
    lines += [
        terminal.wrapped(
            f"your {row.name} in {row.folder} would rank {rank} of {len(table.rows)}", columns
        )
        for rank, row in shown
        if row.mine
    ]
    if left := len(below[top:]):
        lines.append(f"  {left} more of your own: --top={top + left}")
    return "\n".join(lines)


def _line(rank: str, figure: str, date: str, cells: Sequence[str], columns: int) -> str:
    """Formats a line; model, hardware and author share the width that is left."""
    model, hardware, recipe, author = cells
    left = columns - len(f"{rank}  {figure:>12}  {date:10}  ") - LONGEST - 2
    if columns < NARROW:
        texts = [terminal.padded(model, left - 2), terminal.padded(recipe, LONGEST)]
        if left < 16:  # no room for a recipe beside the model
            texts = [terminal.padded(model, max(left + LONGEST, 14))]
        text = "  ".join([rank, f"{figure:>12}", *texts, f"{date:10}"]).rstrip()
        return terminal.cut(text, columns)
    widths = [(left - 6) * share // sum(SHARES) for share in SHARES]
    model, hardware, author = map(terminal.padded, (model, hardware, author), widths)
    texts = [model, hardware, terminal.padded(recipe, LONGEST), f"{date:10}", author]
    return "  ".join([rank, f"{figure:>12}", *texts]).rstrip()


def collect(folders: list[Path]) -> list[Result]:
    """Returns the published results and those of the folders, marked as yours. Raises Refusal."""
    collected = {_measurement(result): result for result in results.dawnbench_results()}
    for folder in folders:
        found_results, problems = results.read_tree(folder, misses=True)
        for line in problems:
            terminal.say(f"left out: {line}")
        if not found_results and not problems:
            reason = "holds no entry; should hold DATASET/train/NAME.json or such"
            raise Refusal(f"{shown(folder)}: {reason}")
        count = len(collected)
        for result in found_results:
            measurement = _measurement(result)
            other = collected.get(measurement)
            if other is None or (other.mine and result.usd not in (None, other.usd)):
                collected[measurement] = replace(result, mine=True)
        if left := len(found_results) - (len(collected) - count):
            terminal.say(f"left out: {left} of {shown(folder)}, given or published already")
    return [*collected.values()]


def _measurement(result: Result) -> tuple[Any, ...]:
    """Returns the measured figures and flaws; equal for copies of a run, packaged or not."""
    latency = result.latency or result.usd, result.score  # a package may add usd
    figures = result.curve if result.phase == "train" else latency
    return result.dataset, result.phase, figures or result.file, result.flaws


def _choose_dataset(dataset: str, threshold: float | None, collected: list[Result]) -> str:
    """Returns the data set to show. A threshold without a data set means that of your runs."""
    by_folder = RANKED | {result.dataset: result.task for result in collected}
    dataset = {name.lower(): name for name in by_folder}.get(dataset.lower(), dataset)
    if dataset not in ("", *by_folder):
        hint = suggestion(dataset, by_folder, "")
        expected = f"should be one of {', '.join(by_folder)}{'; ' * bool(hint)}{hint}"
        refuse("dataset", dataset, expected)
    if threshold is not None:
        my_datasets = {result.dataset for result in collected if result.mine}
        if not dataset and len(my_datasets) == 1:
            dataset = my_datasets.pop()
        if not dataset:
            refuse("threshold", threshold, "needs --dataset, as each has its own metric")
        by_folder[dataset].check_threshold(threshold)
    return dataset


def format_unranked(unranked: list[Result], columns: int = COLUMNS) -> str:
    """Formats your entries that are in no table, with the reasons."""
    lines = []
    for row in unranked:
        text = f"your {row.name} in {row.folder}, {row.dataset} {row.phase}"
        lines.append(terminal.wrapped(f"{text}: {'; '.join(row.reasons)}", columns))
    return "\n".join(["not ranked", *lines])


class Ranking(NamedTuple):
    """Published entries and yours, ranked.

    Attributes:
      tables: those with results of yours, then DAWNBench's others.
      unranked: results of yours that the rules keep out of the tables; `reasons` says why.
      results: all results that were considered.
    """

    tables: list[Table]
    unranked: list[Result]
    results: list[Result]


def rank(
    folders: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    dataset: str = "",
    until: str = "",
    threshold: float | None = None,
) -> Ranking:
    """Ranks the 118 published entries together with entries of yours.

    >>> best = rank(dataset="CIFAR10").tables[0].rows[0]
    >>> best.model, round(best.hours * 3600, 1)
    ('Custom Resnet 9', 9.4)

    Args:
      folders: folders of runs, or trees of entries; one alone may be given without a list.
      dataset: only this data set's tables: "CIFAR10", "ImageNet", "SQuAD", ...; "": all.
      until: only entries of this date or before, YYYY-MM-DD; "": all.
      threshold: rank by the time to this score, in the data set's metric, in place of the
        benchmark's own. Without `dataset` the data set is that of the folders' entries.

    Raises:
      Refusal: a folder holds no entry, an argument is out of range, or no entry is left.
    """
    try:
        last_date = datetime.date.fromisoformat(str(until or "9999-12-31")).isoformat()
    except ValueError:
        refuse("until", until, "should be a date, YYYY-MM-DD")
    collected = collect(files.paths(folders))
    dataset = _choose_dataset(dataset, threshold, collected)
    others = [result.dataset for result in collected if result.mine and result.dataset != dataset]
    if dataset and others:
        names = ", ".join(sorted({*others}))
        terminal.say(f"left out: {len(others)} of yours, of {names} and not of {dataset}")
    wanted = [r for r in collected if dataset in ("", r.dataset)]
    if late := [r for r in wanted if r.mine and r.date > last_date]:
        terminal.say(f"left out: {len(late)} of yours, later than {until}")
    wanted = [r for r in wanted if r.date <= last_date]
    if threshold is not None:
        wanted = [results.at_threshold(result, threshold) for result in wanted]
    ranked = sorted(tables.rank(wanted), key=lambda table: not any(row.mine for row in table.rows))
    ranking = Ranking(ranked, [r for r in wanted if r.reasons and r.mine], wanted)
    if not ranking.tables and not ranking.unranked:
        text = f"name folders with {dataset or 'some'}, a later --until or a lower --threshold"
        raise Refusal(f"no entry is left to rank; {text}")
    return ranking


def main(options: Options, arguments: list[str]) -> None:
    if options.curve:
        for name in ("until", "threshold", "json", "csv", "html", "plot"):
            if value := getattr(options, name):
                refuse(name, value, "is for tables, which --curve does not print; leave it out")
        draw_curves(arguments, options.curve, options.dataset)
        print(options.curve)
        return
    if options.json and options.csv:
        refuse("csv", True, "and --json are two forms of the tables; choose one")
    ranking = rank(arguments, options.dataset, options.until, options.threshold)
    paths = sys.stderr if options.json or options.csv else sys.stdout  # else they were in the data
    if options.html:
        from dawnbench_tf.ranking import pages  # slow: half a second, like plots

        print(pages.write(Path(options.html), ranking.tables, ranking.results), file=paths)
    if options.plot:
        from dawnbench_tf.ranking import plots

        plots.draw(ranking.results, Path(options.plot))
        print(options.plot, file=paths)
    if options.json:
        print(json.dumps(_json_values(ranking), indent=1))
    elif options.csv:
        writer = csv.DictWriter(sys.stdout, ["table", "rank", "figure", *FACTS, "title", "reasons"])
        writer.writeheader()
        for table in _json_values(ranking):
            for row in table["rows"]:
                cells = {**table, **row, "reasons": "; ".join(row.get("reasons", ()))}
                writer.writerow({name: defused(cells.get(name)) for name in writer.fieldnames})
    elif not options.html and not options.plot:
        columns = terminal.columns(sys.stdout) if sys.stdout.isatty() else COLUMNS
        own = sum(any(row.mine for row in table.rows) for table in ranking.tables)
        parts = [format_ranking(table, options.top, columns) for table in ranking.tables]
        parts[own:own] = [format_unranked(ranking.unranked, columns)] if ranking.unranked else []
        print("\n\n".join(parts))


def draw_curves(
    arguments: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    path: str | os.PathLike[str],
    dataset: str = "",
) -> None:
    """Draws the accuracy over time of your runs and of published entries in one picture.

    Args:
      arguments: folders of runs or trees of entries, and names of published training entries.
      path: file of the picture; its suffix decides the format.
      dataset: draw only this data set's; "": the one that all of them are of.

    Raises:
      Refusal: there are no arguments, one is neither, they are of several data sets, or the file
        can't be written.
    """
    from dawnbench_tf.ranking import plots

    texts = list(dict.fromkeys(map(str, files.paths(arguments))))
    if not texts:
        refuse("curve", os.fspath(path), "needs folders of runs or names of published entries")
    names = {row["name"] for row in published_entries().values() if row["phase"] == "train"}
    for text in texts:
        if text not in names and not Path(text).exists():
            hint = suggestion(text, names, "`dawnbench leaderboard --csv` has the names")
            raise Refusal(f"{shown(text)}: is no folder and no published entry; {hint}")
    collected = collect([Path(text) for text in texts if text not in names])
    trained = [result for result in collected if result.phase == "train"]
    dataset = _choose_dataset(dataset, None, collected)
    trained = [result for result in trained if dataset in ("", result.dataset)]
    rows = [result for result in trained if result.mine]
    datasets = {row.dataset for row in rows}
    for name in (text for text in texts if text in names):
        # Entries of two data sets may have one name.
        same = [result for result in trained if result.name == name and not result.mine]
        rows += [result for result in same if result.dataset in datasets] or same
    plots.draw_curves(rows, Path(path))


def _json_values(ranking: Ranking) -> list[dict[str, Any]]:
    def facts(row: Result) -> dict[str, Any]:
        return {name: getattr(row, name) for name in FACTS}

    tables = []
    for table in ranking.tables:
        ranked = enumerate(table.rows, 1)
        rows = [{"rank": n, "figure": table.figure.value(row), **facts(row)} for n, row in ranked]
        names = {"dataset": table.dataset, "title": table.title, "table": table.figure.name}
        tables.append({**names, "rows": rows})
    for dataset in dict.fromkeys(row.dataset for row in ranking.unranked):
        unranked = [row for row in ranking.unranked if row.dataset == dataset]
        rows = [{**facts(row), "reasons": list(row.reasons)} for row in unranked]
        tables.append({"dataset": dataset, "title": dataset, "table": "not ranked", "rows": rows})
    return tables


if __name__ == "__main__":
    flags.run(main, Options, files=True)
