"""The rules of entries by name and grade, and what breaks them. Plain Python."""

from collections.abc import Callable
from difflib import get_close_matches
from enum import IntEnum
from typing import NamedTuple

from dawnbench_tf.submission import field_rules, review_rules, row_rules
from dawnbench_tf.submission.source import PHASES, Complaints, Source, Violation
from dawnbench_tf.tasks import RANKED


class Grade(IntEnum):
    """How much a rule asks."""

    CHECKED = 1  # what DAWNBench's own submission tests checked; all 118 published entries keep it
    RANKED = 2  # what makes its figures ones that can be ranked; so do they this
    FORM = 3  # the form as documented; new entries keep it
    REVIEW = 4  # what the maintainers asked about when they read an entry


OF_THRESHOLD = ("accuracy", "threshold")  # rules that another threshold decides anew


class Rule(NamedTuple):
    """A named rule. It yields the line (the TSV's for a rule of rows) and what is wrong there."""

    name: str
    grade: Grade
    check: Callable[[Source], Complaints]
    of_rows: bool = False


RULES = (
    Rule("required", Grade.CHECKED, field_rules.required),
    Rule("version", Grade.CHECKED, field_rules.version),
    Rule("timestamp", Grade.CHECKED, field_rules.timestamp),
    Rule("figures", Grade.CHECKED, field_rules.figures),
    Rule("accuracy", Grade.CHECKED, field_rules.accuracy),
    Rule("pair", Grade.CHECKED, field_rules.pair),
    Rule("columns", Grade.CHECKED, row_rules.columns, of_rows=True),
    Rule("cells", Grade.CHECKED, row_rules.cells, of_rows=True),
    Rule("fraction", Grade.CHECKED, row_rules.fraction, of_rows=True),
    Rule("threshold", Grade.CHECKED, row_rules.reached, of_rows=True),
    Rule("possible", Grade.RANKED, field_rules.possible),
    Rule("inference range", Grade.RANKED, field_rules.inference_range),
    Rule("embedded", Grade.RANKED, field_rules.embedded),
    Rule("as measured", Grade.RANKED, field_rules.as_measured),
    Rule("whole test", Grade.RANKED, field_rules.whole_test),
    Rule("increasing", Grade.RANKED, row_rules.increasing, of_rows=True),
    Rule("took time", Grade.RANKED, row_rules.took_time, of_rows=True),
    Rule("range", Grade.RANKED, row_rules.percent_range, of_rows=True),
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
    Rule("column order", Grade.FORM, row_rules.column_order, of_rows=True),
    Rule("percent", Grade.REVIEW, row_rules.no_fraction, of_rows=True),
    Rule("author", Grade.REVIEW, review_rules.author),
    Rule("machine type", Grade.REVIEW, review_rules.machine_type),
    Rule("cluster price", Grade.REVIEW, review_rules.cluster),
    Rule("hyper-parameters", Grade.REVIEW, review_rules.hyperparameters),
)


def broken_rules(source: Source, grade: Grade) -> list[Violation]:
    """All that is wrong with an entry, by the rules up to a grade."""
    if source.phase not in PHASES or source.dataset not in RANKED:
        names = {name.lower(): name for name in RANKED}
        near = get_close_matches(source.dataset.lower(), names, 1)
        hint = f"; did you mean {names[near[0]]}?" if near and source.phase in PHASES else ""
        text = f"should be in train or inference of one of {', '.join(RANKED)}"
        return [Violation(source.path, 1, "folder", text + hint)]
    violations = []
    for rule in RULES:
        if rule.grade <= grade and (source.has_table or not rule.of_rows):
            path = source.table if rule.of_rows else source.path
            complaints = rule.check(source)
            violations += [Violation(path, line, rule.name, text) for line, text in complaints]
    return violations
