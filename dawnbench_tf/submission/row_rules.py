"""Rules for the rows of an entry's TSV: columns, cells, order, ranges, the threshold.

Each function yields the line of the TSV and the message for each violation it finds.
"""

from itertools import pairwise

from dawnbench_tf.submission.source import Complaints, Source, number, quoted

LARGEST = 1e6  # epochs or hours; as hours, over a century


def columns(source: Source) -> Complaints:
    """Requires exactly the columns of the data set, in any order."""
    due, header = source.task.columns, source.header
    if sorted(header) != sorted(due):
        extra = ", ".join(quoted(name) for name in header[:20] if name not in due)
        lacking = ", ".join(name for name in due if name not in header)
        faults = [f"has {extra}"] * bool(extra) + [f"lacks {lacking}"] * bool(lacking)
        yield 1, f"header {' and '.join(faults) or 'repeats a column'}; should be {' '.join(due)}"


def column_order(source: Source) -> Complaints:
    """Requires the columns in the documented order."""
    due = source.task.columns
    if source.header != due and sorted(source.header) == sorted(due):
        yield 1, f"columns are {' '.join(source.header)}; should be {' '.join(due)}"


def cells(source: Source) -> Complaints:
    """Requires at least one row, and a number in every cell."""
    width = len(source.header)
    if not source.rows:
        yield 1, "has no row; should have one for each evaluation"
    for line, cells in source.rows:
        if len(cells) != width:
            yield line, f"has {len(cells)} cells; should have {width}, one tab between two"
        elif bad := [cell for cell in cells if number(cell) is None]:
            yield line, f"{quoted(bad[0])} should be a number"


def increasing(source: Source) -> Complaints:
    """Requires epochs that never fall and hours that rise, from 0 to LARGEST."""
    for name, strictly in (("epoch", False), ("hours", True)):
        column = source.column(name)
        if column and column[0][1] < 0:
            yield column[0][0], f"{name} is {column[0][1]:g}; should be 0 or more"
        if column and column[-1][1] > LARGEST:
            yield column[-1][0], f"{name} is {column[-1][1]:g}; should be at most {LARGEST:g}"
        for (_, before), (line, value) in pairwise(column):
            if value < before or (strictly and value == before):
                yield line, f"{name} is {value:g} after {before:g}; should go up"


def fraction(source: Source) -> Complaints:
    """Requires F1 from 0 to 1 in every row, as DAWNBench's own tests did."""
    if source.task.highest == 1.0:
        yield from beyond(source, source.column(source.task.metric))


def percent_range(source: Source) -> Complaints:
    """Requires accuracies from 0 to 100 percent in every row."""
    if source.task.highest != 1.0:
        for name in source.task.columns[2:]:
            yield from beyond(source, source.column(name))


def beyond(source: Source, column: list[tuple[int, float]]) -> Complaints:
    """Yields the values of a column that are outside the range of the task's metric."""
    highest = source.task.highest
    unit = "a fraction, 0 to 1" if highest == 1.0 else "percent, 0 to 100"
    for line, value in column:
        if not 0 <= value <= highest:
            yield line, f"{value:g} should be {unit}"


def reached(source: Source) -> Complaints:
    """Requires a row that reaches the threshold."""
    task = source.task
    column = [(value, line) for line, value in source.column(task.metric)]
    best, line = max(column, default=(None, 1))
    if best is not None and not best >= task.threshold:
        yield line, f"{task.metric} never reached {task.threshold:g}; its best is {best:g}"


def took_time(source: Source) -> Complaints:
    """Refuses rows that reach the threshold at 0 hours."""
    hours = dict(source.column("hours"))
    for line, value in source.column(source.task.metric):
        if value >= source.task.threshold and hours.get(line) == 0:
            yield line, "hours is 0 at the threshold; should be above 0"


def no_fraction(source: Source) -> Complaints:
    """Refuses a percent column that looks like a fraction (pull requests 5 and 14)."""
    if source.task.highest == 1.0:
        return
    for name in source.task.columns[2:]:
        column = source.column(name)
        if column and max(value for _, value in column) <= 1:
            yield column[0][0], f"{name} looks like a fraction; should be percent, 0 to 100"
