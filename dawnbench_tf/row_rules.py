"""Rules of an entry's rows, its TSV: columns, cells, order, ranges, the threshold."""

from collections.abc import Iterator
from itertools import pairwise

from dawnbench_tf.entry_source import Source, number, quoted

Found = Iterator[tuple[int, str]]  # line of the TSV, what is wrong there


def columns(source: Source) -> Found:
    """All columns of the data set, no others; in any order."""
    due, given = source.ranking.columns, source.header
    if sorted(given) != sorted(due):
        extra = ", ".join(quoted(name) for name in given if name not in due)
        lacking = ", ".join(name for name in due if name not in given)
        what = [f"has {extra}"] * bool(extra) + [f"lacks {lacking}"] * bool(lacking)
        yield 1, f"header {' and '.join(what) or 'repeats a column'}; should be {' '.join(due)}"


def column_order(source: Source) -> Found:
    """Columns in the documented order."""
    due = source.ranking.columns
    if source.header != due and sorted(source.header) == sorted(due):
        yield 1, f"columns are {' '.join(source.header)}; should be {' '.join(due)}"


def cells(source: Source) -> Found:
    """A row at least; in each a number for each column."""
    width = len(source.header)
    if not source.rows:
        yield 1, "has no row; should have one for each evaluation"
    for line, cells in source.rows:
        if len(cells) != width:
            yield line, f"has {len(cells)} cells; should have {width}, one tab between two"
        elif bad := [cell for cell in cells if number(cell) is None]:
            yield line, f"{quoted(bad[0])} should be a number"


def increasing(source: Source) -> Found:
    """Epochs never fall, hours rise."""
    for name, strictly in (("epoch", False), ("hours", True)):
        column = source.column(name)
        if column and column[0][1] < 0:
            yield column[0][0], f"{name} is {column[0][1]:g}; should be 0 or more"
        for (_, before), (line, value) in pairwise(column):
            if value < before or (strictly and value == before):
                yield line, f"{name} is {value:g} after {before:g}; should go up"


def fraction(source: Source) -> Found:
    """F1 of every row between 0 and 1, as the original tests had it."""
    if source.ranking.highest == 1.0:
        yield from beyond(source, source.column(source.ranking.metric))


def percent_range(source: Source) -> Found:
    """Accuracies of every row between 0 and 100 percent."""
    if source.ranking.highest != 1.0:
        for name in source.ranking.columns[2:]:
            yield from beyond(source, source.column(name))


def beyond(source: Source, column: list[tuple[int, float]]) -> Found:
    """The values of a column that are outside the metric's unit."""
    highest = source.ranking.highest
    unit = "a fraction, 0 to 1" if highest == 1.0 else "percent, 0 to 100"
    for line, value in column:
        if not 0 <= value <= highest:
            yield line, f"{value:g} should be {unit}"


def reached(source: Source) -> Found:
    """A row at the threshold."""
    ranking = source.ranking
    column = [(value, line) for line, value in source.column(ranking.metric)]
    best, line = max(column, default=(None, 1))
    if best is not None and not best >= ranking.threshold:
        yield line, f"{ranking.metric} never reached {ranking.threshold:g}; its best is {best:g}"


def no_fraction(source: Source) -> Found:
    """Percent where percent is due (pull requests 5 and 14)."""
    if source.ranking.highest == 1.0:
        return
    for name in source.ranking.columns[2:]:
        column = source.column(name)
        if column and max(value for _, value in column) <= 1:
            yield column[0][0], f"{name} looks like a fraction; should be percent, 0 to 100"
