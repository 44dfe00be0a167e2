"""The table of entry rules, each with a name and a grade, and their application. Plain Python."""

from collections.abc import Callable
from difflib import get_close_matches
from enum import IntEnum
from typing import NamedTuple

from dawnbench_tf.submission import field_rules, review_rules, row_rules
from dawnbench_tf.submission.source import PHASES, Complaints, Source, Violation
from dawnbench_tf.tasks import RANKED


class Grade(IntEnum):
    """Strictness of a rule; checking at a grade includes all lower grades."""

    CHECKED = 1  # DAWNBench's own submission tests checked it; all 118 published entries pass
    RANKED = 2  # figures are rankable; all 118 published entries pass
    FORM = 3  # the form as documented; required of new entries
    REVIEW = 4  # the maintainers asked about it in reviews


THRESHOLD_RULES = ("accuracy", "threshold")  # their outcome depends on the threshold


class Rule(NamedTuple):
    """A named rule; `check` yields the line and the message of each violation."""

    name: str
    grade: Grade
    check: Callable[[Source], Complaints]
    about_rows: bool = False  # whether lines are those of the TSV instead of the JSON


RULES = (
    Rule("required", Grade.CHECKED, field_rules.required),
    Rule("version", Grade.CHECKED, field_rules.version),
    Rule("timestamp", Grade.CHECKED, field_rules.timestamp),
    Rule("figures", Grade.CHECKED, field_rules.figures),
    Rule("accuracy", Grade.CHECKED, field_rules.accuracy),
    Rule("pair", Grade.CHECKED, field_rules.pair),
    Rule("columns", Grade.CHECKED, row_rules.columns, about_rows=True),
    Rule("cells", Grade.CHECKED, row_rules.cells, about_rows=True),
    Rule("fraction", Grade.CHECKED, row_rules.fraction, about_rows=True),
    Rule("threshold", Grade.CHECKED, row_rules.reached, about_rows=True),
    Rule("possible", Grade.RANKED, field_rules.possible),
    Rule("inference range", Grade.RANKED, field_rules.inference_range),
    Rule("embedded", Grade.RANKED, field_rules.embedded),
    Rule("as measured", Grade.RANKED, field_rules.as_measured),
    Rule("whole test", Grade.RANKED, field_rules.whole_test),
    Rule("increasing", Grade.RANKED, row_rules.increasing, about_rows=True),
    Rule("took time", Grade.RANKED, row_rules.took_time, about_rows=True),
    Rule("range", Grade.RANKED, row_rules.percent_range, about_rows=True),
    Rule("texts", Grade.FORM, field_rules.texts),
    Rule("written date", Grade.FORM, field_rules.written_date),
    Rule("links", Grade.FORM, field_rules.links),
    Rule("prices", Grade.FORM, field_rules.prices),
    Rule("cost", Grade.FORM, field_rules.cost),
    Rule("misc", Grade.FORM, field_rules.misc),
    Rule("repeated key", Grade.FORM, field_rules.repeated),
    Rule("file name", Grade.FORM, field_rules.file_name),
    Rule("no table", Grade.FORM, field_rules.no_table),
    Rule("inference fraction", Grade.FORM, field_rules.inference_fraction),
    Rule("column order", Grade.FORM, row_rules.column_order, about_rows=True),
    Rule("percent", Grade.REVIEW, row_rules.no_fraction, about_rows=True),
    Rule("author", Grade.REVIEW, review_rules.author),
    Rule("machine type", Grade.REVIEW, review_rules.machine_type),
    Rule("cluster price", Grade.REVIEW, review_rules.cluster),
    Rule("hyper-parameters", Grade.REVIEW, review_rules.hyperparameters),
)


def _has_task(source: Source) -> bool:
    try:
        return bool(source.task)
    except KeyError:
        return False


def find_violations(source: Source, grade: Grade) -> list[Violation]:
    """Returns all violations of an entry.

    Args:
      source: the entry's files.
      grade: the strictest grade of rules to apply.
    """
    if source.phase not in PHASES or not _has_task(source):
        names = {name.lower(): name for name in RANKED}
        near = get_close_matches(source.dataset.lower(), names, 1)
        hint = f"; did you mean {names[near[0]]}?" if near and source.phase in PHASES else ""
        text = f"should be in train or inference of one of {', '.join(RANKED)}"
        return [Violation(source.path, 1, "folder", text + hint)]
    violations = []
    for rule in RULES:
        if rule.grade <= grade and (source.has_table or not rule.about_rows):
            path = source.table if rule.about_rows else source.path
            complaints = rule.check(source)
            violations += [Violation(path, line, rule.name, text) for line, text in complaints]
    return violations
