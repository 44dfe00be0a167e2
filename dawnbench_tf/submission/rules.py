"""The rules for entries: of the JSON's fields, of the TSV's rows, of what reviewers asked about.

`GRADES` has the name of each rule; a paragraph with its name says what it requires. Plain Python.
"""

import datetime
import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from enum import IntEnum
from itertools import pairwise
from typing import Any

from dawnbench_tf.refusals import shown, suggestion
from dawnbench_tf.submission import prices
from dawnbench_tf.submission.source import PHASES, Source, Violation, is_number, number, quoted
from dawnbench_tf.tasks import GIVEN, RANKED, TASKS
from dawnbench_tf.terminal import counted

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
_MACHINE_TYPE = re.compile(
    r"\.(\d{0,4}x?large|medium|small|micro|metal)|\b[a-z]\d\w{0,9}-(standard|high|mega|ultra)"
    r"|\bStandard_\w|\bN[CDV]\d|\bTPU|\bv\d[a-z]{0,20}-\d",
    re.IGNORECASE,
)


class Grade(IntEnum):
    """Strictness of a rule; checking at a grade includes all lower grades."""

    CHECKED = 1  # DAWNBench's own submission tests checked it; all 118 published entries pass
    RANKED = 2  # figures are rankable; all 118 published entries pass
    FORM = 3  # the form as documented; required of new entries
    REVIEW = 4  # the maintainers asked about it in reviews


GRADES = {  # rule -> its grade, in the order of messages
    rule: grade
    for grade, rules in {
        Grade.CHECKED: "required, version, timestamp, figures, accuracy, pair, columns, cells, "
        "fraction, threshold",
        Grade.RANKED: "possible, inference range, cost, repeated key, embedded, as measured, "
        "whole test, increasing, took time, range",
        Grade.FORM: "texts, written date, links, prices, misc, file name, no table, "
        "inference fraction, column order",
        Grade.REVIEW: "percent, author, machine type, machine price, hyper-parameters",
    }.items()
    for rule in rules.split(", ")
}


def date(text: object) -> datetime.date | None:
    """Parses a timestamp; months and days may have one digit. None if it is no valid date."""
    if not isinstance(text, str):
        return None
    try:
        day = datetime.datetime.strptime(text, "%Y-%m-%d").date()
    except ValueError:
        return None
    return day if FIRST_YEAR <= day.year <= LAST_YEAR else None


def is_future(day: datetime.date) -> bool:
    """Whether a date is in the future, whatever the time zone."""
    # The first zone, UTC+14, has each date before all others.
    return day > (datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=14)).date()


def is_link(text: str) -> bool:
    """Whether a text is a printable http or https URL without spaces."""
    rest = text.removeprefix("http://").removeprefix("https://")
    return 0 < len(rest) < len(text) <= LONGEST and all(c.isprintable() and c != " " for c in text)


def checksum(figures: Sequence[float] | Sequence[Sequence[float]]) -> str:
    """Returns the SHA-256 of rows, in the order of the task's columns, or of (latency, score)."""
    # Latency is in ms. Whole numbers count as floats.
    values = [[*map(float, row)] if isinstance(row, Sequence) else float(row) for row in figures]
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()


def find_violations(source: Source, grade: Grade) -> list[Violation]:
    """Returns all violations of an entry of the rules up to a grade."""
    try:
        is_ranked = source.phase in PHASES and bool(source.task)
    except KeyError:
        is_ranked = False
    if not is_ranked:
        hint = suggestion(source.dataset, RANKED, "") if source.phase in PHASES else ""
        text = f"should be in train or inference of one of {', '.join(RANKED)}"
        return [Violation(source.path, 1, "folder", f"{text}{'; ' * bool(hint)}{hint}")]
    faults = [*_field_faults(source), *_data_faults(source)]
    if grade >= Grade.REVIEW and source.task.benchmark:  # others go nowhere
        faults += _review_faults(source)
    violations = [Violation(source.path, 1, name, text) for name, text in faults]
    if source.has_table:
        violations += [Violation(source.table, *fault) for fault in _row_faults(source)]
    order = list(GRADES)
    violations = [item for item in violations if GRADES[item.rule] <= grade]
    return sorted(violations, key=lambda item: order.index(item.rule))


def _field_faults(source: Source) -> Iterator[tuple[str, str]]:
    """Yields (rule, message) for the JSON's fields and the names of the files."""
    fields, task, misc = source.fields, source.task, source.misc
    inference, metric = source.phase == "inference", source.task.metric
    measured = (metric, "latency") if inference else ()
    text, score, table = fields.get("timestamp"), fields.get(metric), shown(source.table.name)

    # required: the mandatory fields.
    for key in (*TEXTS, *measured):
        if fields.get(key) is None:
            yield "required", f"{key} is not given; it is required"
    # version: a known version of the form.
    version = fields.get("version")
    if version is not None and version not in VERSIONS:
        yield "version", f"version is {quoted(version)}; should be {VERSIONS[0]}"
    # timestamp: a valid date. written date: two digits for month and day, not in the future.
    day = date(text)
    if text is not None and day is None:
        yield "timestamp", f"timestamp is {quoted(text)}; should be YYYY-MM-DD"
    if day and text != day.isoformat():
        due = f"should have two digits for month and day: {day}"
        yield "written date", f"timestamp is {quoted(text)}; {due}"
    if day and is_future(day):
        due = "should be the day of submission"
        yield "written date", f"timestamp {day} is in the future; {due}"
    # figures: prices, scores and latencies are numbers; a latency is above 0.
    for key in ("cost" if inference else "costPerHour", *measured):
        value = fields.get(key)
        if value is not None and not is_number(value):
            yield "figures", f"{key} is {quoted(value)}; should be a number"
        elif key == "latency" and value is not None and value <= 0:
            yield "figures", f"latency is {value} ms; should be above 0"
    # An inference entry reaches the threshold (accuracy) with a score from 0 to 100 (inference
    # range; a fraction may be given in percent), of at most 1 where the metric is a fraction.
    if inference and is_number(score):
        if score < task.threshold:
            yield "accuracy", f"{metric} is {score:.10g}; should be at least {task.threshold:g}"
        if not 0 <= score <= 100:
            yield "inference range", f"{metric} {score:g} should be percent, 0 to 100"
        if task.highest == 1.0 and score > 1:
            yield "inference fraction", f"{metric} {score:g} should be a fraction, 0 to 1"
    # pair, no table: a training entry has a TSV, an inference entry has none.
    if not inference and not source.has_table:
        yield "pair", f"{table} is not there; a training entry has its rows in it"
    if inference and source.has_table:
        yield "no table", f"{table} is there; an inference entry has no rows"
    # texts: stripped, of at most LONGEST characters, without lone surrogates. links: URLs.
    for key in (*TEXTS, *LINKS):
        value = fields.get(key)
        if value is None:
            continue
        if not isinstance(value, str):
            yield "texts", f"{key} is {quoted(value)}; should be text"
            continue
        if not value and key != "authorEmail":
            yield "texts", f"{key} is empty; it is required"
        elif value != value.strip():
            yield "texts", f"{key} is {quoted(value)}; should have no spaces around"
        elif len(value) > LONGEST or any("\ud800" <= c <= "\udfff" for c in value):
            due = f"should be whole characters, {LONGEST} at most"
            yield "texts", f"{key} is {quoted(value)}; {due}"
        if key in LINKS and not is_link(value.strip()):
            yield "links", f"{key} is {quoted(value)}; should be an http or https URL"
    # prices: none is null, or of the other phase. possible: prices above 0, prices and latencies
    # of at most LARGEST.
    for key in ("costPerHour", "cost", "latency"):
        value = fields.get(key)
        if key in fields and value is None and key != "latency":
            yield "prices", f"{key} is null; leave it out where there is no price"
        if is_number(value) and value <= 0 and key != "latency":
            yield "possible", f"{key} is {value:g}; should be above 0"
        elif is_number(value) and value > LARGEST:
            yield "possible", f"{key} is {value:g}; should be at most {LARGEST:g}"
    foreign, own = ("costPerHour", "cost") if inference else ("cost", "costPerHour")
    if foreign in fields:
        yield "prices", f"{foreign} is no field of {source.phase} entries; {own} is theirs"
    # cost: with a price per hour in misc, cost = price x latency.
    price, value, latency = misc.get("costPerHour"), fields.get("cost"), fields.get("latency")
    if inference and is_number(price) and is_number(latency) and latency > 0:
        usd = price * latency / MS_PER_HOUR
        if not is_number(value) or not abs(value - usd) <= 1e-6 * abs(usd):
            text = f"cost should be {usd:g}: {price:g} USD per hour at {latency:g} ms"
            yield "cost", f"{text}; is {'not given' if value is None else quoted(value)}"
    # misc: a JSON object. repeated key: none.
    if not isinstance(fields.get("misc", {}), dict):
        yield "misc", "misc should be a JSON object"
    for key in source.repeated:
        yield "repeated key", f"{quoted(key)} is given twice"
    # file name: AUTHOR_MODEL_HARDWARE-TAG_FRAMEWORK.json.
    stem = source.path.stem
    in_name = all(character.isalnum() or character in "_.+-" for character in stem)
    parts = list(filter(None, stem.split("_")))
    if len(parts) < 4 or not in_name or not stem[0].isalnum() or len(stem) > 250:
        due = "AUTHOR_MODEL_HARDWARE-TAG_FRAMEWORK.json, without spaces"
        yield "file name", f"file should be named {due}"


def _data_faults(source: Source) -> Iterator[tuple[str, str]]:
    """Yields (rule, message) for what misc states of recipe, data and measurement."""
    misc, task, training = source.misc, source.task, source.phase == "train"
    # embedded: of real and whole data, of the folder's task, without pretrained weights.
    recipe, data = misc.get("recipe"), misc.get("data")
    if isinstance(data, dict) and data.get("source") == GIVEN and not task.is_own:
        text = "trained on examples that were given in Python; only a task's own may be ranked"
        yield "embedded", text
    recipe = recipe if isinstance(recipe, dict) else {}
    if recipe.get("synthetic"):
        yield "embedded", "trained on synthetic data; only real data may be ranked"
    if recipe.get("train_examples"):
        text = f"trained on {quoted(recipe['train_examples'])} examples; should be on all"
        yield "embedded", text
    stated = recipe.get("task")
    if isinstance(stated, dict) and not task.is_own:
        if stated.get("name") != task.name:
            due = "should be in a folder of its own"
            yield "embedded", f"is an entry of another task than {task.name}; {due}"
        else:
            whole = {name: getattr(task, f"{name}_examples") for name in ("train", "test")}
            counts = [(stated.get(f"{name}_examples", n), name) for name, n in whole.items()]
            text = ", ".join(f"{quoted(n)} {name}" for n, name in counts)
            due = f"{task.name} has {whole['train']:,} and {whole['test']:,}"
            yield "embedded", f"trained and tested on {text} examples; {due}"
    row = TASKS.get(str(stated))
    if recipe.get("pretrained") and row and row.inputs == "images" and training:
        text = "started from pretrained weights; image tasks are trained from scratch"
        yield "embedded", text
    if row and row.folder != source.dataset:
        yield "embedded", f"is an entry of the task {row.name}; should be in {row.folder}"
    # as measured: figures match the entry's checksum, if it has one (ours do).
    if training:
        name = "rows"
        columns = [[v for _, v in source.column(column)] for column in task.columns]
        whole_rows = all(len(column) == len(source.rows) for column in columns)
        figures: list[Any] = list(zip(*columns, strict=False))
    else:
        name = "latency or score"
        figures = [source.fields.get(key) for key in ("latency", task.metric)]
        whole_rows = all(map(is_number, figures))
    digest = misc.get(CHECKSUM)
    if digest is not None and not (whole_rows and digest == checksum(figures)):
        text = f"{name} differ from those that were measured; restore the files"
        yield "as measured", text
    # whole test: every test example was timed, and no other.
    timed, examples = misc.get("examples"), misc.get("testExamples")
    if not training and is_number(timed) and is_number(examples) and timed != examples:
        text = f"{'only ' * (timed < examples)}{timed:g} of {examples:g} examples were timed"
        yield "whole test", text


def _review_faults(source: Source) -> Iterator[tuple[str, str]]:
    """Yields (rule, message) for what DAWNBench's maintainers asked about in reviews."""
    fields = source.fields
    address, hardware = fields.get("authorEmail"), fields.get("hardware")
    if isinstance(address, str) and "@" not in address:
        text = "authorEmail is no address, and the author should be reachable; "
        text += "`dawnbench entries package RUN_DIR --author_email=ADDRESS` sets it"
        yield "author", text
    # Pull request 111: the cloud's machine type in the hardware of an entry with a price.
    price = fields.get("costPerHour")
    cost, latency = fields.get("cost"), fields.get("latency")
    if not is_number(price) and is_number(cost) and is_number(latency) and latency > 0:
        price = cost / latency * 3.6e6  # of an example, which takes milliseconds
    if isinstance(hardware, str) and (is_number(price) or is_number(cost)):
        if not _MACHINE_TYPE.search(hardware) and not prices.find_instance(hardware):
            text = "has a price, so hardware should name the cloud's machine type: p3.2xlarge"
            yield "machine type", f"hardware {quoted(hardware)} {text}"
    # Pull request 54: a cluster's price is the sum over its machines. A cost of 10,000 examples in
    # place of one is no price of any machine.
    if is_number(price) and (machine := prices.find_instance(str(hardware))):
        count = prices.count_machines(str(hardware))
        due = count * machine.usd_per_hour
        if not due / 10 < price < due * 10 or (count > 1 and price < 1.5 * machine.usd_per_hour):
            text = f"the price is {price:.6g} an hour; {count} {machine.name} cost {due:g}"
            yield "machine price", text
    # Pull requests 3, 10, 20, ...: batch size, learning rate and optimizer, as keys or in texts.
    if source.phase == "train":
        stated, letters = {k: v for k, v in fields.items() if k not in (*TEXTS, *LINKS)}, ""
        with suppress(RecursionError):  # lists in lists in lists
            letters = re.sub(r'[^a-z"]', "", json.dumps(stated).lower())
        for name, words in (
            ("batch size", ("batch",)),
            ("learning rate", ("learningrate", "schedule", "cycle", '"lr"')),
            ("optimizer", ("optimi", "momentum")),
        ):
            if not any(word in letters for word in words):
                yield "hyper-parameters", f"misc does not give the {name}; reviewers ask for it"


def _row_faults(source: Source) -> Iterator[tuple[int, str, str]]:
    """Yields (line, rule, message) for the rows of the TSV."""
    task, header, due = source.task, source.header, source.task.columns
    highest, scores = task.highest, source.column(task.metric)
    # columns: exactly those of the data set, in any order. column order: the documented one.
    if sorted(header) != sorted(due):
        extra = ", ".join(quoted(name) for name in header[:20] if name not in due)
        lacking = ", ".join(name for name in due if name not in header)
        faults = [f"has {extra}"] * bool(extra) + [f"lacks {lacking}"] * bool(lacking)
        text = f"header {' and '.join(faults) or 'repeats a column'}; should be {' '.join(due)}"
        yield 1, "columns", text
    elif header != due:
        yield 1, "column order", f"columns are {' '.join(header)}; should be {' '.join(due)}"
    # cells: at least one row, and a number in every cell.
    if not source.rows:
        yield 1, "cells", "has no row; should have one for each evaluation"
    for line, cells in source.rows:
        if len(cells) != len(header):
            text = f"should have {len(header)}, one tab between two"
            yield line, "cells", f"has {counted(len(cells), 'cell')}; {text}"
        elif bad := [cell for cell in cells if number(cell) is None]:
            yield line, "cells", f"{quoted(bad[0])} should be a number"
    # increasing: epochs never fall and hours rise, from 0 to LARGEST_ROW.
    for name, strictly in (("epoch", False), ("hours", True)):
        column = source.column(name)
        if column and column[0][1] < 0:
            yield column[0][0], "increasing", f"{name} is {column[0][1]:g}; should be 0 or more"
        if column and column[-1][1] > LARGEST_ROW:
            text = f"{name} is {column[-1][1]:g}; should be at most {LARGEST_ROW:g}"
            yield column[-1][0], "increasing", text
        for (_, before), (line, value) in pairwise(column):
            if value < before or (strictly and value == before):
                yield line, "increasing", f"{name} is {value:g} after {before:g}; should go up"
    # fraction: F1 from 0 to 1, as DAWNBench's own tests did. range: accuracies in percent; a column
    # that looks like a fraction was asked about (percent; pull requests 5 and 14).
    rule, unit = "range", "percent, 0 to 100"
    if highest == 1.0:
        rule, unit = "fraction", "a fraction, 0 to 1"
    for name in due[2:]:
        column = source.column(name)
        for line, value in column:
            if not 0 <= value <= highest:
                yield line, rule, f"{value:g} should be {unit}"
        if highest != 1.0 and column and max(value for _, value in column) <= 1:
            text = f"{name} looks like a fraction; should be percent, 0 to 100"
            yield column[0][0], "percent", text
    top5 = dict(source.column("top5Accuracy"))
    for line, value in source.column("top1Accuracy"):
        if value > top5.get(line, value):
            yield line, "range", f"top1Accuracy {value:g} is above top5Accuracy {top5[line]:g}"
    # threshold: a row reaches it. took time: not at 0 hours.
    best, line = max(((value, line) for line, value in scores), default=(None, 1))
    if best is not None and not best >= task.threshold:
        text = f"{task.metric} never reached {task.threshold:g}; its best is {best:.10g}"
        yield line, "threshold", text
    hours = dict(source.column("hours"))
    for line, value in scores:
        if value >= task.threshold and hours.get(line) == 0:
            yield line, "took time", "hours is 0 at the threshold; should be above 0"
