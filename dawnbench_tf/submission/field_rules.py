"""Rules of an entry's fields, its JSON, and of its files' names."""

import datetime
import re

from dawnbench_tf.submission.row_rules import beyond
from dawnbench_tf.submission.source import Complaints, Source, is_number, quoted, shown
from dawnbench_tf.tasks import TASKS

VERSIONS = ("v1.0",)
TEXTS = ("version", "author", "authorEmail", "framework", "model", "hardware", "timestamp")
LINKS = ("codeURL", "logFilename")
_NAME = re.compile(r"[^\W_]([\w.+-]*_){3,}[\w.+-]+")


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
    try:
        return datetime.datetime.strptime(str(text), "%Y-%m-%d").date()
    except ValueError:
        return None


def written_date(source: Source) -> Complaints:
    """A date with two digits for month and day, not in the future."""
    text = source.fields.get("timestamp")
    day, line = date(text), source.line("timestamp")
    if day and text != day.isoformat():
        yield line, f"timestamp is {text}; should have two digits for month and day: {day}"
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
    """An inference entry's metric within its unit."""
    metric = source.task.metric
    value = source.fields.get(metric)
    if source.phase == "inference" and is_number(value):
        for line, text in beyond(source, [(source.line(metric), value)]):
            yield line, f"{metric} {text}"


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


def links(source: Source) -> Complaints:
    """Links are http or https."""
    for key in LINKS:
        value = source.fields.get(key)
        if isinstance(value, str) and not re.match(r"\s*https?://\S+\s*$", value):
            yield source.line(key), f"{key} is {quoted(value)}; should be an http or https URL"


def prices(source: Source) -> Complaints:
    """A price is positive or left out."""
    for key in ("costPerHour", "cost"):
        value = source.fields.get(key)
        if key in source.fields and value is None:
            yield source.line(key), f"{key} is null; leave it out where there is no price"
        elif is_number(value) and value <= 0:
            yield source.line(key), f"{key} is {value:g}; should be above 0"


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
    if not _NAME.fullmatch(source.path.stem):
        yield 1, "file should be named AUTHOR_MODEL_HARDWARE-TAG_FRAMEWORK.json, without spaces"


def embedded(source: Source) -> Complaints:
    """No synthetic data, and no other task's run, in a data set's folder."""
    misc, line = source.fields.get("misc"), source.line("misc")
    recipe = misc.get("recipe") if isinstance(misc, dict) else None
    if not isinstance(recipe, dict):
        return
    if recipe.get("synthetic"):
        yield line, "trained on synthetic data; only real data may be ranked"
    task = TASKS.get(str(recipe.get("task")))
    if task and task.folder != source.dataset:
        yield line, f"is an entry of the task {task.name}; should be in {task.folder}"
