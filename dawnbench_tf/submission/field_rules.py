"""Rules for the fields of an entry's JSON and for its file names.

Each function yields the line of the file and the message for each violation it finds.
"""

import datetime
import math
import re
from typing import Any

from dawnbench_tf.refusals import shown
from dawnbench_tf.submission import checksums
from dawnbench_tf.submission.source import Complaints, Source, is_number, quoted
from dawnbench_tf.tasks import GIVEN, TASKS, Task

VERSIONS = ("v1.0",)
TEXTS = ("version", "author", "authorEmail", "framework", "model", "hardware", "timestamp")
LINKS = ("codeURL", "logFilename")
FIRST_YEAR, LAST_YEAR = 1970, 2999  # range of plausible dates
LARGEST = 1e9  # USD or ms: the highest plausible figure
LONGEST = 2000  # characters of a text, at most
MS_PER_HOUR = 3_600_000
_SPLITS = ("train", "test")


def required(source: Source) -> Complaints:
    """Requires the mandatory fields."""
    inference = (source.task.metric, "latency") if source.phase == "inference" else ()
    for key in (*TEXTS, *inference):
        if source.fields.get(key) is None:
            yield source.line(key), f"{key} is not given; it is required"


def version(source: Source) -> Complaints:
    """Requires a known version of the form."""
    version = source.fields.get("version")
    if version is not None and version not in VERSIONS:
        yield source.line("version"), f"version is {quoted(version)}; should be {VERSIONS[0]}"


def timestamp(source: Source) -> Complaints:
    """Requires a valid date."""
    text = source.fields.get("timestamp")
    if text is not None and date(text) is None:
        yield source.line("timestamp"), f"timestamp is {quoted(text)}; should be YYYY-MM-DD"


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


def written_date(source: Source) -> Complaints:
    """Requires two digits for month and day, and a date that is not in the future."""
    text = source.fields.get("timestamp")
    day, line = date(text), source.line("timestamp")
    if day and text != day.isoformat():
        yield line, f"timestamp is {quoted(text)}; should have two digits for month and day: {day}"
    if day and is_future(day):
        yield line, f"timestamp {day} is in the future; should be the day of submission"


def figures(source: Source) -> Complaints:
    """Requires prices, scores and latencies to be numbers; a latency is above 0."""
    price = ("costPerHour",) if source.phase == "train" else ("cost",)
    inference = (source.task.metric, "latency") if source.phase == "inference" else ()
    for key in (*price, *inference):
        value = source.fields.get(key)
        if value is not None and not is_number(value):
            yield source.line(key), f"{key} is {quoted(value)}; should be a number"
        elif key == "latency" and value is not None and value <= 0:
            yield source.line(key), f"latency is {value} ms; should be above 0"


def accuracy(source: Source) -> Complaints:
    """Requires an inference entry to reach its task's threshold."""
    task, value = source.task, source.fields.get(source.task.metric)
    if source.phase == "inference" and is_number(value) and value < task.threshold:
        line, name = source.line(task.metric), task.metric
        yield line, f"{name} is {value:g}; should be at least {task.threshold:g}"


def inference_range(source: Source) -> Complaints:
    """Requires an inference entry's score from 0 to 100 (a fraction may be given in percent)."""
    yield from _score_beyond(source, 0.0, 100.0, "percent, 0 to 100")


def inference_fraction(source: Source) -> Complaints:
    """Requires an inference entry's score of at most 1 where the metric is a fraction."""
    if source.task.highest == 1.0:
        yield from _score_beyond(source, -math.inf, 1.0, "a fraction, 0 to 1")


def _score_beyond(source: Source, low: float, high: float, expected: str) -> Complaints:
    metric = source.task.metric
    value = source.fields.get(metric)
    if source.phase == "inference" and is_number(value) and not low <= value <= high:
        yield source.line(metric), f"{metric} {value:g} should be {expected}"


def pair(source: Source) -> Complaints:
    """Requires the TSV of a training entry."""
    if source.phase == "train" and not source.has_table:
        yield 1, f"{shown(source.table.name)} is not there; a training entry has its rows in it"


def no_table(source: Source) -> Complaints:
    """Refuses a TSV beside an inference entry."""
    if source.phase == "inference" and source.has_table:
        yield 1, f"{shown(source.table.name)} is there; an inference entry has no rows"


def texts(source: Source) -> Complaints:
    """Requires text fields to be stripped, encodable text of at most LONGEST characters."""
    for key in (*TEXTS, *LINKS):
        value = source.fields.get(key)
        if value is not None and not isinstance(value, str):
            yield source.line(key), f"{key} is {quoted(value)}; should be text"
        elif value is not None and (value != value.strip() or (not value and key != "authorEmail")):
            yield source.line(key), f"{key} is {quoted(value)}; should be text, no spaces around"
        elif value is not None and (len(value) > LONGEST or not is_writable(value)):
            expected = f"should be whole characters, {LONGEST} at most"
            yield source.line(key), f"{key} is {quoted(value)}; {expected}"


def is_writable(text: str) -> bool:
    """Whether a text can be encoded as UTF-8: it contains no lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def links(source: Source) -> Complaints:
    """Requires links to be http or https URLs."""
    for key in LINKS:
        value = source.fields.get(key)
        if isinstance(value, str) and not is_link(value.strip()):
            yield source.line(key), f"{key} is {quoted(value)}; should be an http or https URL"


def is_link(text: str) -> bool:
    """Whether a text is a printable http or https URL without spaces."""
    rest = text.removeprefix("http://").removeprefix("https://")
    return 0 < len(rest) < len(text) <= LONGEST and all(c.isprintable() and c != " " for c in text)


def prices(source: Source) -> Complaints:
    """Refuses null prices."""
    for key in ("costPerHour", "cost"):
        if key in source.fields and source.fields[key] is None:
            yield source.line(key), f"{key} is null; leave it out where there is no price"


def possible(source: Source) -> Complaints:
    """Requires prices above 0, and prices and latencies of at most LARGEST."""
    for key in ("costPerHour", "cost", "latency"):
        value = source.fields.get(key)
        if is_number(value) and value <= 0 and key != "latency":
            yield source.line(key), f"{key} is {value:g}; should be above 0"
        elif is_number(value) and value > LARGEST:
            yield source.line(key), f"{key} is {value:g}; should be at most {LARGEST:g}"


def cost(source: Source) -> Complaints:
    """Requires the price field of the entry's phase.

    An inference entry with a price per hour in misc needs cost = price x latency.
    """
    phase, fields = source.phase, source.fields
    foreign, due = ("cost", "costPerHour") if phase == "train" else ("costPerHour", "cost")
    if foreign in fields:
        yield source.line(foreign), f"{foreign} is no field of {phase} entries; {due} is theirs"
    price = source.misc.get("costPerHour")
    value, latency = fields.get("cost"), fields.get("latency")
    if phase == "inference" and is_number(price) and is_number(latency):
        expected = price * latency / MS_PER_HOUR
        if not is_number(value) or not abs(value - expected) <= 1e-6 * abs(expected):
            text = f"cost should be {expected:g}: {price:g} USD per hour at {latency:g} ms"
            yield source.line("cost"), f"{text}; is {quoted(value)}"


def as_measured(source: Source) -> Complaints:
    """Requires figures that match the entry's checksum, if it has one (ours do)."""
    checksum = source.misc.get(checksums.KEY)
    if checksum is not None and checksum != _checksum(source):
        figures = "rows" if source.phase == "train" else "latency or score"
        text = f"{figures} differ from those that were measured; restore the files"
        yield source.line("misc"), text


def _checksum(source: Source) -> str | None:
    if source.phase == "inference":
        latency, score = (source.fields.get(key) for key in ("latency", source.task.metric))
        if is_number(latency) and is_number(score):
            return checksums.inference_checksum(latency, score)
        return None
    columns = [source.column(name) for name in source.task.columns]
    if any(len(column) != len(source.rows) for column in columns):
        return None
    return checksums.training_checksum(
        list(zip(*([v for _, v in c] for c in columns), strict=True))
    )


def whole_test(source: Source) -> Complaints:
    """Requires that every test example was timed, and no other."""
    timed, due = source.misc.get("examples"), source.misc.get("testExamples")
    if source.phase == "inference" and is_number(timed) and is_number(due) and timed != due:
        only = "only " * (timed < due)
        yield source.line("misc"), f"{only}{timed:g} of {due:g} examples were timed"


def misc(source: Source) -> Complaints:
    """Requires misc to be a JSON object."""
    if not isinstance(source.fields.get("misc", {}), dict):
        yield source.line("misc"), "misc should be a JSON object"


def repeated(source: Source) -> Complaints:
    """Refuses duplicate keys."""
    for key in source.repeated:
        yield source.line(key), f"{quoted(key)} is given twice"


def file_name(source: Source) -> Complaints:
    """Requires the file name AUTHOR_MODEL_HARDWARE-TAG_FRAMEWORK.json."""
    stem = source.path.stem
    parts = [part for part in re.split("_", stem) if part]
    in_name = all(character.isalnum() or character in "_.+-" for character in stem)
    if len(parts) < 4 or not in_name or not stem[0].isalnum() or len(stem) > 250:
        yield 1, "file should be named AUTHOR_MODEL_HARDWARE-TAG_FRAMEWORK.json, without spaces"


def embedded(source: Source) -> Complaints:
    """Refuses entries of synthetic, partial or given data, from weights, or of another task."""
    recipe, line = source.misc.get("recipe"), source.line("misc")
    data, own = source.misc.get("data"), source.task.is_own
    if isinstance(data, dict) and data.get("source") == GIVEN and not own:
        yield line, "trained on examples that were given in Python; only a task's own may be ranked"
    if not isinstance(recipe, dict):
        return
    if recipe.get("synthetic"):
        yield line, "trained on synthetic data; only real data may be ranked"
    if recipe.get("train_examples"):
        yield line, f"trained on {quoted(recipe['train_examples'])} examples; should be on all"
    stated = recipe.get("task")
    if isinstance(stated, dict) and not own:
        yield line, _describe_part(stated, source.task)
    task = TASKS.get(str(stated))
    if recipe.get("pretrained") and task and task.inputs == "images" and source.phase == "train":
        yield line, "started from pretrained weights; image tasks are trained from scratch"
    if task and task.folder != source.dataset:
        yield line, f"is an entry of the task {task.name}; should be in {task.folder}"


def _describe_part(stated: dict[str, Any], task: Task) -> str:
    """Says how the task of an entry's recipe differs from the library's task of its folder."""
    if stated.get("name") != task.name:
        return f"is an entry of another task than {task.name}; should be in a folder of its own"
    numbers = [stated.get(f"{n}_examples", getattr(task, f"{n}_examples")) for n in _SPLITS]
    whole = [getattr(task, f"{name}_examples") for name in _SPLITS]
    text = ", ".join(f"{quoted(n)} {name}" for n, name in zip(numbers, _SPLITS, strict=True))
    due = f"{whole[0]:,} and {whole[1]:,}"
    return f"trained and tested on {text} examples; {task.name} has {due}"
