"""Rules of an entry's fields, its JSON, and of its files' names."""

import datetime
import math
import re

from dawnbench_tf.refusals import shown
from dawnbench_tf.submission import checksums
from dawnbench_tf.submission.source import Complaints, Source, is_number, quoted
from dawnbench_tf.tasks import GIVEN, TASKS

VERSIONS = ("v1.0",)
TEXTS = ("version", "author", "authorEmail", "framework", "model", "hardware", "timestamp")
LINKS = ("codeURL", "logFilename")
FIRST_YEAR, LAST_YEAR = 1970, 2999  # of a date that is no mistake
LARGEST = 1e9  # USD, or ms: beyond all reason
LONGEST = 2000  # characters of a text
MS_PER_HOUR = 3_600_000


def required(source: Source) -> Complaints:
    """What must be given."""
    inference = (source.task.metric, "latency") if source.phase == "inference" else ()
    for key in (*TEXTS, *inference):
        if source.fields.get(key) is None:
            yield source.line(key), f"{key} is not given; it is required"


def version(source: Source) -> Complaints:
    """The version of the form."""
    version = source.fields.get("version")
    if version is not None and version not in VERSIONS:
        yield source.line("version"), f"version is {quoted(version)}; should be {VERSIONS[0]}"


def timestamp(source: Source) -> Complaints:
    """A date."""
    text = source.fields.get("timestamp")
    if text is not None and date(text) is None:
        yield source.line("timestamp"), f"timestamp is {quoted(text)}; should be YYYY-MM-DD"


def date(text: object) -> datetime.date | None:
    """The date that a timestamp gives, also with one digit for months and days."""
    if not isinstance(text, str) or len(text) > 10:
        return None
    try:
        day = datetime.datetime.strptime(text, "%Y-%m-%d").date()
    except ValueError:
        return None
    return day if FIRST_YEAR <= day.year <= LAST_YEAR else None


def written_date(source: Source) -> Complaints:
    """A date with two digits for month and day, not in the future."""
    text = source.fields.get("timestamp")
    day, line = date(text), source.line("timestamp")
    if day and text != day.isoformat():
        yield line, f"timestamp is {quoted(text)}; should have two digits for month and day: {day}"
    if day and day > datetime.date.today() + datetime.timedelta(days=1):  # ahead of us by a zone
        yield line, f"timestamp {day} is in the future; should be the day of submission"


def figures(source: Source) -> Complaints:
    """Numbers where numbers are due."""
    price = ("costPerHour",) if source.phase == "train" else ("cost",)
    inference = (source.task.metric, "latency") if source.phase == "inference" else ()
    for key in (*price, *inference):
        value = source.fields.get(key)
        if value is not None and not is_number(value):
            yield source.line(key), f"{key} is {quoted(value)}; should be a number"
        elif key == "latency" and value is not None and value <= 0:
            yield source.line(key), f"latency is {value} ms; should be above 0"


def accuracy(source: Source) -> Complaints:
    """Inference at the threshold."""
    task, value = source.task, source.fields.get(source.task.metric)
    if source.phase == "inference" and is_number(value) and value < task.threshold:
        line, name = source.line(task.metric), task.metric
        yield line, f"{name} is {value:g}; should be at least {task.threshold:g}"


def inference_range(source: Source) -> Complaints:
    """An inference entry's metric in 0 to 100: percent, or what may be a fraction in percent."""
    yield from _score_beyond(source, 0.0, 100.0, "percent, 0 to 100")


def inference_fraction(source: Source) -> Complaints:
    """A fraction where the metric is one."""
    if source.task.highest == 1.0:
        yield from _score_beyond(source, -math.inf, 1.0, "a fraction, 0 to 1")


def _score_beyond(source, low, high, right):
    metric = source.task.metric
    value = source.fields.get(metric)
    if source.phase == "inference" and is_number(value) and not low <= value <= high:
        yield source.line(metric), f"{metric} {value:g} should be {right}"


def pair(source: Source) -> Complaints:
    """A training entry has rows."""
    if source.phase == "train" and not source.has_table:
        yield 1, f"{shown(source.table.name)} is not there; a training entry has its rows in it"


def no_table(source: Source) -> Complaints:
    """An inference entry has none."""
    if source.phase == "inference" and source.has_table:
        yield 1, f"{shown(source.table.name)} is there; an inference entry has no rows"


def texts(source: Source) -> Complaints:
    """Texts are texts."""
    for key in (*TEXTS, *LINKS):
        value = source.fields.get(key)
        if value is not None and not isinstance(value, str):
            yield source.line(key), f"{key} is {quoted(value)}; should be text"
        elif value is not None and (value != value.strip() or (not value and key != "authorEmail")):
            yield source.line(key), f"{key} is {quoted(value)}; should be text, no spaces around"
        elif value is not None and (len(value) > LONGEST or not is_writable(value)):
            right = f"should be whole characters, {LONGEST} at most"
            yield source.line(key), f"{key} is {quoted(value)}; {right}"


def is_writable(text: str) -> bool:
    """Whether a text can be written as UTF-8: it holds no half of a character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def links(source: Source) -> Complaints:
    """Links are http or https."""
    for key in LINKS:
        value = source.fields.get(key)
        if isinstance(value, str) and not is_link(value.strip()):
            yield source.line(key), f"{key} is {quoted(value)}; should be an http or https URL"


def is_link(text: str) -> bool:
    """Whether a text is an http or https URL that can be shown and followed."""
    rest = text.removeprefix("http://").removeprefix("https://")
    return 0 < len(rest) < len(text) <= LONGEST and all(c.isprintable() and c != " " for c in text)


def prices(source: Source) -> Complaints:
    """A price is left out where there is none."""
    for key in ("costPerHour", "cost"):
        if key in source.fields and source.fields[key] is None:
            yield source.line(key), f"{key} is null; leave it out where there is no price"


def possible(source: Source) -> Complaints:
    """Prices above 0, no figure beyond all reason."""
    for key in ("costPerHour", "cost", "latency"):
        value = source.fields.get(key)
        if is_number(value) and value <= 0 and key != "latency":
            yield source.line(key), f"{key} is {value:g}; should be above 0"
        elif is_number(value) and value > LARGEST:
            yield source.line(key), f"{key} is {value:g}; should be at most {LARGEST:g}"


def cost(source: Source) -> Complaints:
    """A price in the field of its phase; of one inference, what price and latency make."""
    phase, fields = source.phase, source.fields
    foreign, due = ("cost", "costPerHour") if phase == "train" else ("costPerHour", "cost")
    if foreign in fields:
        yield source.line(foreign), f"{foreign} is no field of {phase} entries; {due} is theirs"
    price = source.misc.get("costPerHour")
    value, latency = fields.get("cost"), fields.get("latency")
    if phase == "inference" and is_number(price) and is_number(latency):
        right = price * latency / MS_PER_HOUR
        if not is_number(value) or not abs(value - right) <= 1e-6 * abs(right):
            text = f"cost should be {right:g}: {price:g} USD per hour at {latency:g} ms"
            yield source.line("cost"), f"{text}; is {quoted(value)}"


def as_measured(source: Source) -> Complaints:
    """What our own entries measured is what they hold."""
    checksum = source.misc.get(checksums.KEY)
    if checksum is not None and checksum != _checksum(source):
        what = "rows" if source.phase == "train" else "latency or score"
        yield source.line("misc"), f"{what} are not those that were measured; restore the files"


def _checksum(source):
    if source.phase == "inference":
        latency, score = (source.fields.get(key) for key in ("latency", source.task.metric))
        both = is_number(latency) and is_number(score)
        return checksums.of_inference(latency, score) if both else None
    columns = [source.column(name) for name in source.task.columns]
    if any(len(column) != len(source.rows) for column in columns):
        return None
    return checksums.of_training(list(zip(*([v for _, v in c] for c in columns), strict=True)))


def whole_test(source: Source) -> Complaints:
    """All of the test was timed."""
    timed, due = source.misc.get("examples"), source.misc.get("testExamples")
    if source.phase == "inference" and is_number(timed) and is_number(due) and timed < due:
        yield source.line("misc"), f"only {timed:g} of {due:g} examples were timed"


def misc(source: Source) -> Complaints:
    """misc is an object."""
    if not isinstance(source.fields.get("misc", {}), dict):
        yield source.line("misc"), "misc should be a JSON object"


def repeated(source: Source) -> Complaints:
    """A key comes once."""
    for key in source.repeated:
        yield source.line(key), f"{quoted(key)} is given twice"


def file_name(source: Source) -> Complaints:
    """AUTHOR_MODEL_HARDWARE-TAG_FRAMEWORK."""
    stem = source.path.stem
    parts = [part for part in re.split("_", stem) if part]
    in_name = all(character.isalnum() or character in "_.+-" for character in stem)
    if len(parts) < 4 or not in_name or not stem[0].isalnum() or len(stem) > 250:
        yield 1, "file should be named AUTHOR_MODEL_HARDWARE-TAG_FRAMEWORK.json, without spaces"


def embedded(source: Source) -> Complaints:
    """No synthetic data, none from elsewhere, and no other task's run, in a data set's folder."""
    recipe, line = source.misc.get("recipe"), source.line("misc")
    data = source.misc.get("data")
    if isinstance(data, dict) and data.get("source") == GIVEN:
        yield line, "trained on examples that were given in Python; only a task's own may be ranked"
    if not isinstance(recipe, dict):
        return
    if recipe.get("synthetic"):
        yield line, "trained on synthetic data; only real data may be ranked"
    task = TASKS.get(str(recipe.get("task")))
    if task and task.folder != source.dataset:
        yield line, f"is an entry of the task {task.name}; should be in {task.folder}"
