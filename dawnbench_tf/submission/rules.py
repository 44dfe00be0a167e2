"""The rules for entries: of the JSON's fields, of the TSV's rows, of what reviewers asked about.

A function yields a message for each violation, or (line of the TSV, message) if it is about rows;
`RULES` has the name and the grade of each. Plain Python.
"""

import datetime
import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from itertools import pairwise
from typing import Any, NamedTuple

from dawnbench_tf.refusals import shown, suggestion
from dawnbench_tf.submission import prices
from dawnbench_tf.submission.source import (
    PHASES,
    Source,
    Violation,
    is_number,
    number,
    quoted,
)
from dawnbench_tf.tasks import GIVEN, RANKED, TASKS, Task

VERSIONS = ("v1.0",)
TEXTS = ("version", "author", "authorEmail", "framework", "model", "hardware", "timestamp")
LINKS = ("codeURL", "logFilename")
FIRST_YEAR, LAST_YEAR = 1970, 2999  # range of plausible dates
LARGEST = 1e9  # USD or ms: the highest plausible figure
LARGEST_ROW = 1e6  # epochs or hours; as hours, over a century
LONGEST = 2000  # characters of a text, at most
MS_PER_HOUR = 3_600_000
CHECKSUM = "measuredSha256"  # key in misc: SHA-256 of the measurements; reveals damage and edits
THRESHOLD_RULES = ("accuracy", "threshold")  # their outcome depends on the threshold
_SPLITS = ("train", "test")
_MACHINE_TYPE = re.compile(
    r"\.(\d{0,4}x?large|medium|small|micro|metal)|\b[a-z]\d\w{0,9}-(standard|high|mega|ultra)"
    r"|\bN[CDV]\w{0,20}\d|\bTPU|\bv\d\w{0,20}-\d",
    re.IGNORECASE,
)


class Grade(IntEnum):
    """Strictness of a rule; checking at a grade includes all lower grades."""

    CHECKED = 1  # DAWNBench's own submission tests checked it; all 118 published entries pass
    RANKED = 2  # figures are rankable; all 118 published entries pass
    FORM = 3  # the form as documented; required of new entries
    REVIEW = 4  # the maintainers asked about it in reviews


def date(text: object) -> datetime.date | None:
    """Parses a timestamp; months and days may have one digit. None if it is no valid date."""
    if not isinstance(text, str) or len(text) > 10:
        return None
    try:
        day = datetime.datetime.strptime(text, "%Y-%m-%d").date()
    except ValueError:
        return None
    return day if FIRST_YEAR <= day.year <= LAST_YEAR else None


def is_future(day: datetime.date) -> bool:
    """Whether a date is in the future, whatever the time zone."""
    return day > datetime.date.today() + datetime.timedelta(days=1)


def is_link(text: str) -> bool:
    """Whether a text is a printable http or https URL without spaces."""
    rest = text.removeprefix("http://").removeprefix("https://")
    return 0 < len(rest) < len(text) <= LONGEST and all(c.isprintable() and c != " " for c in text)


def checksum(figures: Sequence[float] | Sequence[Sequence[float]]) -> str:
    """Returns the SHA-256 of rows, in the order of the task's columns, or of (latency ms, score).

    Whole numbers count as floats.
    """
    values = [[*map(float, row)] if isinstance(row, Sequence) else float(row) for row in figures]
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()


# --- fields of the JSON, and names of files -------------------------------------------------------


def required(source: Source) -> Iterator[str]:
    """Requires the mandatory fields."""
    inference = (source.task.metric, "latency") if source.phase == "inference" else ()
    for key in (*TEXTS, *inference):
        if source.fields.get(key) is None:
            yield f"{key} is not given; it is required"


def version(source: Source) -> Iterator[str]:
    """Requires a known version of the form."""
    version = source.fields.get("version")
    if version is not None and version not in VERSIONS:
        yield f"version is {quoted(version)}; should be {VERSIONS[0]}"


def timestamp(source: Source) -> Iterator[str]:
    """Requires a valid date."""
    text = source.fields.get("timestamp")
    if text is not None and date(text) is None:
        yield f"timestamp is {quoted(text)}; should be YYYY-MM-DD"


def written_date(source: Source) -> Iterator[str]:
    """Requires two digits for month and day, and a date that is not in the future."""
    text = source.fields.get("timestamp")
    day = date(text)
    if day and text != day.isoformat():
        yield f"timestamp is {quoted(text)}; should have two digits for month and day: {day}"
    if day and is_future(day):
        yield f"timestamp {day} is in the future; should be the day of submission"


def figures(source: Source) -> Iterator[str]:
    """Requires prices, scores and latencies to be numbers; a latency is above 0."""
    price = ("costPerHour",) if source.phase == "train" else ("cost",)
    inference = (source.task.metric, "latency") if source.phase == "inference" else ()
    for key in (*price, *inference):
        value = source.fields.get(key)
        if value is not None and not is_number(value):
            yield f"{key} is {quoted(value)}; should be a number"
        elif key == "latency" and value is not None and value <= 0:
            yield f"latency is {value} ms; should be above 0"


def accuracy(source: Source) -> Iterator[str]:
    """Requires an inference entry to reach its task's threshold."""
    task, value = source.task, source.fields.get(source.task.metric)
    if source.phase == "inference" and is_number(value) and value < task.threshold:
        yield f"{task.metric} is {value:g}; should be at least {task.threshold:g}"


def inference_range(source: Source) -> Iterator[str]:
    """Requires an inference entry's score from 0 to 100 (a fraction may be given in percent)."""
    yield from _score_beyond(source, 0.0, 100.0, "percent, 0 to 100")


def inference_fraction(source: Source) -> Iterator[str]:
    """Requires an inference entry's score of at most 1 where the metric is a fraction."""
    if source.task.highest == 1.0:
        yield from _score_beyond(source, -math.inf, 1.0, "a fraction, 0 to 1")


def _score_beyond(source: Source, low: float, high: float, expected: str) -> Iterator[str]:
    metric = source.task.metric
    value = source.fields.get(metric)
    if source.phase == "inference" and is_number(value) and not low <= value <= high:
        yield f"{metric} {value:g} should be {expected}"


def pair(source: Source) -> Iterator[str]:
    """Requires the TSV of a training entry."""
    if source.phase == "train" and not source.has_table:
        yield f"{shown(source.table.name)} is not there; a training entry has its rows in it"


def no_table(source: Source) -> Iterator[str]:
    """Refuses a TSV beside an inference entry."""
    if source.phase == "inference" and source.has_table:
        yield f"{shown(source.table.name)} is there; an inference entry has no rows"


def texts(source: Source) -> Iterator[str]:
    """Requires text fields to be stripped, encodable text of at most LONGEST characters."""
    for key in (*TEXTS, *LINKS):
        value = source.fields.get(key)
        if value is not None and not isinstance(value, str):
            yield f"{key} is {quoted(value)}; should be text"
        elif value is not None and (value != value.strip() or (not value and key != "authorEmail")):
            yield f"{key} is {quoted(value)}; should be text, no spaces around"
        elif value is not None and (len(value) > LONGEST or not is_writable(value)):
            expected = f"should be whole characters, {LONGEST} at most"
            yield f"{key} is {quoted(value)}; {expected}"


def is_writable(text: str) -> bool:
    """Whether a text can be encoded as UTF-8: it contains no lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def links(source: Source) -> Iterator[str]:
    """Requires links to be http or https URLs."""
    for key in LINKS:
        value = source.fields.get(key)
        if isinstance(value, str) and not is_link(value.strip()):
            yield f"{key} is {quoted(value)}; should be an http or https URL"


def null_prices(source: Source) -> Iterator[str]:
    """Refuses null prices."""
    for key in ("costPerHour", "cost"):
        if key in source.fields and source.fields[key] is None:
            yield f"{key} is null; leave it out where there is no price"


def possible(source: Source) -> Iterator[str]:
    """Requires prices above 0, and prices and latencies of at most LARGEST."""
    for key in ("costPerHour", "cost", "latency"):
        value = source.fields.get(key)
        if is_number(value) and value <= 0 and key != "latency":
            yield f"{key} is {value:g}; should be above 0"
        elif is_number(value) and value > LARGEST:
            yield f"{key} is {value:g}; should be at most {LARGEST:g}"


def cost(source: Source) -> Iterator[str]:
    """Requires the price field of the entry's phase.

    An inference entry with a price per hour in misc needs cost = price x latency.
    """
    phase, fields = source.phase, source.fields
    foreign, due = ("cost", "costPerHour") if phase == "train" else ("costPerHour", "cost")
    if foreign in fields:
        yield f"{foreign} is no field of {phase} entries; {due} is theirs"
    price = source.misc.get("costPerHour")
    value, latency = fields.get("cost"), fields.get("latency")
    if phase == "inference" and is_number(price) and is_number(latency):
        expected = price * latency / MS_PER_HOUR
        if not is_number(value) or not abs(value - expected) <= 1e-6 * abs(expected):
            text = f"cost should be {expected:g}: {price:g} USD per hour at {latency:g} ms"
            yield f"{text}; is {quoted(value)}"


def as_measured(source: Source) -> Iterator[str]:
    """Requires figures that match the entry's checksum, if it has one (ours do)."""
    stated = source.misc.get(CHECKSUM)
    if stated is None:
        return
    if source.phase == "inference":
        name = "latency or score"
        figures: list[Any] = [source.fields.get(key) for key in ("latency", source.task.metric)]
        whole = all(map(is_number, figures))
    else:
        name = "rows"
        columns = [[v for _, v in source.column(column)] for column in source.task.columns]
        whole = all(len(column) == len(source.rows) for column in columns)
        figures = list(zip(*columns, strict=whole))
    if not whole or stated != checksum(figures):
        yield f"{name} differ from those that were measured; restore the files"


def whole_test(source: Source) -> Iterator[str]:
    """Requires that every test example was timed, and no other."""
    timed, due = source.misc.get("examples"), source.misc.get("testExamples")
    if source.phase == "inference" and is_number(timed) and is_number(due) and timed != due:
        only = "only " * (timed < due)
        yield f"{only}{timed:g} of {due:g} examples were timed"


def misc(source: Source) -> Iterator[str]:
    """Requires misc to be a JSON object."""
    if not isinstance(source.fields.get("misc", {}), dict):
        yield "misc should be a JSON object"


def repeated(source: Source) -> Iterator[str]:
    """Refuses duplicate keys."""
    for key in source.repeated:
        yield f"{quoted(key)} is given twice"


def file_name(source: Source) -> Iterator[str]:
    """Requires the file name AUTHOR_MODEL_HARDWARE-TAG_FRAMEWORK.json."""
    stem = source.path.stem
    parts = [part for part in re.split("_", stem) if part]
    in_name = all(character.isalnum() or character in "_.+-" for character in stem)
    if len(parts) < 4 or not in_name or not stem[0].isalnum() or len(stem) > 250:
        yield "file should be named AUTHOR_MODEL_HARDWARE-TAG_FRAMEWORK.json, without spaces"


def embedded(source: Source) -> Iterator[str]:
    """Refuses entries of synthetic, partial or given data, from weights, or of another task."""
    recipe = source.misc.get("recipe")
    data, own = source.misc.get("data"), source.task.is_own
    if isinstance(data, dict) and data.get("source") == GIVEN and not own:
        yield "trained on examples that were given in Python; only a task's own may be ranked"
    if not isinstance(recipe, dict):
        return
    if recipe.get("synthetic"):
        yield "trained on synthetic data; only real data may be ranked"
    if recipe.get("train_examples"):
        yield f"trained on {quoted(recipe['train_examples'])} examples; should be on all"
    stated = recipe.get("task")
    if isinstance(stated, dict) and not own:
        yield _describe_part(stated, source.task)
    task = TASKS.get(str(stated))
    if recipe.get("pretrained") and task and task.inputs == "images" and source.phase == "train":
        yield "started from pretrained weights; image tasks are trained from scratch"
    if task and task.folder != source.dataset:
        yield f"is an entry of the task {task.name}; should be in {task.folder}"


def _describe_part(stated: dict[str, Any], task: Task) -> str:
    """Says how the task of an entry's recipe differs from the library's task of its folder."""
    if stated.get("name") != task.name:
        return f"is an entry of another task than {task.name}; should be in a folder of its own"
    numbers = [stated.get(f"{n}_examples", getattr(task, f"{n}_examples")) for n in _SPLITS]
    whole = [getattr(task, f"{name}_examples") for name in _SPLITS]
    text = ", ".join(f"{quoted(n)} {name}" for n, name in zip(numbers, _SPLITS, strict=True))
    due = f"{whole[0]:,} and {whole[1]:,}"
    return f"trained and tested on {text} examples; {task.name} has {due}"


# --- rows of the TSV ------------------------------------------------------------------------------


def columns(source: Source) -> Iterator[tuple[int, str]]:
    """Requires exactly the columns of the data set, in any order."""
    due, header = source.task.columns, source.header
    if sorted(header) != sorted(due):
        extra = ", ".join(quoted(name) for name in header[:20] if name not in due)
        lacking = ", ".join(name for name in due if name not in header)
        faults = [f"has {extra}"] * bool(extra) + [f"lacks {lacking}"] * bool(lacking)
        yield 1, f"header {' and '.join(faults) or 'repeats a column'}; should be {' '.join(due)}"


def column_order(source: Source) -> Iterator[tuple[int, str]]:
    """Requires the columns in the documented order."""
    due = source.task.columns
    if source.header != due and sorted(source.header) == sorted(due):
        yield 1, f"columns are {' '.join(source.header)}; should be {' '.join(due)}"


def cells(source: Source) -> Iterator[tuple[int, str]]:
    """Requires at least one row, and a number in every cell."""
    width = len(source.header)
    if not source.rows:
        yield 1, "has no row; should have one for each evaluation"
    for line, cells in source.rows:
        if len(cells) != width:
            yield line, f"has {len(cells)} cells; should have {width}, one tab between two"
        elif bad := [cell for cell in cells if number(cell) is None]:
            yield line, f"{quoted(bad[0])} should be a number"


def increasing(source: Source) -> Iterator[tuple[int, str]]:
    """Requires epochs that never fall and hours that rise, from 0 to LARGEST_ROW."""
    for name, strictly in (("epoch", False), ("hours", True)):
        column = source.column(name)
        if column and column[0][1] < 0:
            yield column[0][0], f"{name} is {column[0][1]:g}; should be 0 or more"
        if column and column[-1][1] > LARGEST_ROW:
            yield (
                column[-1][0],
                f"{name} is {column[-1][1]:g}; should be at most {LARGEST_ROW:g}",
            )
        for (_, before), (line, value) in pairwise(column):
            if value < before or (strictly and value == before):
                yield line, f"{name} is {value:g} after {before:g}; should go up"


def fraction(source: Source) -> Iterator[tuple[int, str]]:
    """Requires F1 from 0 to 1 in every row, as DAWNBench's own tests did."""
    if source.task.highest == 1.0:
        yield from beyond(source, source.column(source.task.metric))


def percent_range(source: Source) -> Iterator[tuple[int, str]]:
    """Requires accuracies from 0 to 100 percent in every row."""
    if source.task.highest != 1.0:
        for name in source.task.columns[2:]:
            yield from beyond(source, source.column(name))


def beyond(source: Source, column: list[tuple[int, float]]) -> Iterator[tuple[int, str]]:
    """Yields the values of a column that are outside the range of the task's metric."""
    highest = source.task.highest
    unit = "a fraction, 0 to 1" if highest == 1.0 else "percent, 0 to 100"
    for line, value in column:
        if not 0 <= value <= highest:
            yield line, f"{value:g} should be {unit}"


def reached(source: Source) -> Iterator[tuple[int, str]]:
    """Requires a row that reaches the threshold."""
    task = source.task
    column = [(value, line) for line, value in source.column(task.metric)]
    best, line = max(column, default=(None, 1))
    if best is not None and not best >= task.threshold:
        yield line, f"{task.metric} never reached {task.threshold:g}; its best is {best:g}"


def took_time(source: Source) -> Iterator[tuple[int, str]]:
    """Refuses rows that reach the threshold at 0 hours."""
    hours = dict(source.column("hours"))
    for line, value in source.column(source.task.metric):
        if value >= source.task.threshold and hours.get(line) == 0:
            yield line, "hours is 0 at the threshold; should be above 0"


def no_fraction(source: Source) -> Iterator[tuple[int, str]]:
    """Refuses a percent column that looks like a fraction (pull requests 5 and 14)."""
    if source.task.highest == 1.0:
        return
    for name in source.task.columns[2:]:
        column = source.column(name)
        if column and max(value for _, value in column) <= 1:
            yield column[0][0], f"{name} looks like a fraction; should be percent, 0 to 100"


# --- what DAWNBench's maintainers asked about in reviews ------------------------------------------


def author(source: Source) -> Iterator[str]:
    """Requires an address in authorEmail."""
    address = source.fields.get("authorEmail")
    if isinstance(address, str) and "@" not in address:
        yield (
            "authorEmail is no address, and the author should be reachable; `dawnbench entries "
            "package RUN_DIR --author_email=ADDRESS` sets it"
        )


def machine_type(source: Source) -> Iterator[str]:
    """Requires the cloud's machine type in the hardware of an entry with a price (PR 111)."""
    hardware = source.fields.get("hardware")
    priced = any(is_number(source.fields.get(key)) for key in ("costPerHour", "cost"))
    if isinstance(hardware, str) and priced:
        if not _MACHINE_TYPE.search(hardware) and not prices.find_instance(hardware):
            text = "has a price, so hardware should name the cloud's machine type: p3.2xlarge"
            yield f"hardware {quoted(hardware)} {text}"


def cluster(source: Source) -> Iterator[str]:
    """Requires a cluster's price to be the sum over its machines (pull request 54)."""
    price, hardware = source.fields.get("costPerHour"), str(source.fields.get("hardware"))
    if not is_number(price):
        return
    machine, count = prices.find_instance(hardware), prices.count_machines(hardware)
    if machine and count > 1 and price < 1.5 * machine.usd_per_hour:
        due = f"{count} of them cost {count * machine.usd_per_hour:g}"
        yield f"costPerHour {price:g} is one {machine.name}'s; {due}"


def hyperparameters(source: Source) -> Iterator[str]:
    """Requires batch size, learning rate and optimizer in misc (pull requests 3, 10, 20, ...)."""
    misc = source.fields.get("misc")
    if source.phase == "train" and isinstance(misc, dict):
        keys = {re.sub(r"[^a-z]", "", str(key).lower()) for key in _keys(misc)}
        for name, words in (
            ("batch size", ("batch",)),
            ("learning rate", ("learningrate", "schedule", "cycle")),
            ("optimizer", ("optimi", "momentum")),
        ):
            if not any(word in key for key in keys for word in words):
                yield f"misc does not give the {name}; reviewers ask for it"


def _keys(value: dict[str, Any]) -> Iterator[str]:
    """Yields the keys of a JSON object and of all objects within it."""
    waiting: list[Any] = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            yield from item
        waiting += (
            item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
        )


# --- the table ------------------------------------------------------------------------------------


class Rule(NamedTuple):
    """A named rule; `check` yields the message of each violation, about rows with its line."""

    name: str
    grade: Grade
    check: Callable[[Source], Iterator[Any]]
    about_rows: bool = False  # whether lines are those of the TSV instead of the JSON


RULES = (
    Rule("required", Grade.CHECKED, required),
    Rule("version", Grade.CHECKED, version),
    Rule("timestamp", Grade.CHECKED, timestamp),
    Rule("figures", Grade.CHECKED, figures),
    Rule("accuracy", Grade.CHECKED, accuracy),
    Rule("pair", Grade.CHECKED, pair),
    Rule("columns", Grade.CHECKED, columns, about_rows=True),
    Rule("cells", Grade.CHECKED, cells, about_rows=True),
    Rule("fraction", Grade.CHECKED, fraction, about_rows=True),
    Rule("threshold", Grade.CHECKED, reached, about_rows=True),
    Rule("possible", Grade.RANKED, possible),
    Rule("inference range", Grade.RANKED, inference_range),
    Rule("embedded", Grade.RANKED, embedded),
    Rule("as measured", Grade.RANKED, as_measured),
    Rule("whole test", Grade.RANKED, whole_test),
    Rule("increasing", Grade.RANKED, increasing, about_rows=True),
    Rule("took time", Grade.RANKED, took_time, about_rows=True),
    Rule("range", Grade.RANKED, percent_range, about_rows=True),
    Rule("texts", Grade.FORM, texts),
    Rule("written date", Grade.FORM, written_date),
    Rule("links", Grade.FORM, links),
    Rule("prices", Grade.FORM, null_prices),
    Rule("cost", Grade.FORM, cost),
    Rule("misc", Grade.FORM, misc),
    Rule("repeated key", Grade.FORM, repeated),
    Rule("file name", Grade.FORM, file_name),
    Rule("no table", Grade.FORM, no_table),
    Rule("inference fraction", Grade.FORM, inference_fraction),
    Rule("column order", Grade.FORM, column_order, about_rows=True),
    Rule("percent", Grade.REVIEW, no_fraction, about_rows=True),
    Rule("author", Grade.REVIEW, author),
    Rule("machine type", Grade.REVIEW, machine_type),
    Rule("cluster price", Grade.REVIEW, cluster),
    Rule("hyper-parameters", Grade.REVIEW, hyperparameters),
)


def find_violations(source: Source, grade: Grade) -> list[Violation]:
    """Returns all violations of an entry.

    Args:
      source: the entry's files.
      grade: the strictest grade of rules to apply.
    """
    try:
        is_ranked = source.phase in PHASES and bool(source.task)
    except KeyError:
        is_ranked = False
    if not is_ranked:
        hint = suggestion(source.dataset, RANKED, "") if source.phase in PHASES else ""
        text = f"should be in train or inference of one of {', '.join(RANKED)}"
        return [Violation(source.path, 1, "folder", f"{text}{'; ' * bool(hint)}{hint}")]
    violations = []
    for rule in RULES:
        if rule.grade <= grade and (source.has_table or not rule.about_rows):
            for item in rule.check(source):
                path, (line, text) = source.path, (1, item)
                if rule.about_rows:
                    path, (line, text) = source.table, item
                violations.append(Violation(path, line, rule.name, text))
    return violations
