"""A run's entry in the published form, held against three of the published ones."""

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from dawnbench_tf import entry as entry_files
from dawnbench_tf import recipes, run_entry, tasks
from dawnbench_tf.options import RunOptions
from dawnbench_tf.tta import TimeToAccuracy

PUBLISHED = sorted((Path(__file__).parent / "published").glob("*.json"))
DESCRIBED = {
    "hardware": "2 CPU",
    "tag": "2cpu",
    "software": {"tensorflow": "2.20.0", "gitRevision": "abc"},
}
RECIPE = recipes.get("cifar10/resnet56_tf")


def timed(values, recipe=RECIPE):
    task = tasks.TASKS[recipe.task]
    timer = TimeToAccuracy(task.threshold, task.metric)
    hours = [0.1 + 0.2 * index for index in range(len(values))]
    timer.rows = [
        {"epoch": index + 1, "hours": hour, task.metric: value}
        for index, (hour, value) in enumerate(zip(hours, values, strict=True))
    ]
    return timer


def entry(values=(90.0, 94.0, 93.9), recipe=RECIPE, **run):
    run = RunOptions(**{"author": "Ada Lovelace", "author_email": "ada@example.com", **run})
    task = tasks.TASKS[recipe.task]
    return run_entry.training(task, recipe, run, timed(values, recipe), DESCRIBED)


def test_files_are_named_and_placed_as_published(tmp_path):
    path, _ = run_entry.write(tmp_path, entry())
    assert str(path.relative_to(tmp_path)) == (
        "CIFAR10/train/ada-lovelace_resnet56-tf_2cpu_tensorflow-2.20.json"
    )
    assert path.with_suffix(".tsv").exists()
    assert not list(tmp_path.rglob("*.tmp"))


@pytest.mark.parametrize("published", PUBLISHED, ids=lambda path: path.stem)
def test_fields_and_columns_are_those_of_published_entries(tmp_path, published):
    theirs = json.loads(published.read_text())
    if "bidaf" in published.stem:
        ours = entry((0.5, 0.76), recipes.get("squad/bidaf_tf"), cost_per_hour=0.9)
    else:
        ours = entry(cost_per_hour=0.9)
    path, _ = run_entry.write(tmp_path, ours)
    ours = json.loads(path.read_text())
    assert set(theirs) - set(ours) == {"codeURL"}  # optional, and the author's to add
    assert set(ours) <= set(theirs)
    assert {key: type(ours[key]) for key in ours} == {key: type(theirs[key]) for key in ours}
    heads = [
        file.read_text().splitlines()[0]
        for file in (path.with_suffix(".tsv"), published.with_suffix(".tsv"))
    ]
    assert heads[0] == heads[1]


def test_the_original_submission_tests_would_pass(tmp_path):
    path, _ = run_entry.write(tmp_path, entry())
    fields = json.loads(path.read_text())
    for name in ("version", "author", "authorEmail", "framework", "model", "hardware", "timestamp"):
        assert name in fields
    assert fields["version"] == "v1.0" and re.fullmatch(r"\d{4}-\d\d-\d\d", fields["timestamp"])
    with open(path.with_suffix(".tsv"), encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert sorted(rows[0]) == ["epoch", "hours", "top1Accuracy"]
    assert max(float(row["top1Accuracy"]) for row in rows) >= 94.0


def test_a_price_that_is_not_known_is_left_out():
    assert "costPerHour" not in entry_files.texts(entry())[0]
    assert '"costPerHour": 0.5' in entry_files.texts(entry(cost_per_hour=0.5))[0]


def test_misc_holds_what_reviewers_asked_for():
    misc = entry().misc
    assert misc["recipe"]["learning_rate"] == 0.1 and misc["recipe"]["weight_decay"] == 5e-4
    assert misc["gitRevision"] == "abc" and misc["seed"] == 0 and misc["testExamples"] == 10_000
    assert misc["versions"] == {"tensorflow": "2.20.0"} and "clockSeconds" in misc
    assert not entry_files.violations(entry(), entry_files.Grade.REVIEW)


@pytest.mark.parametrize(
    ("values", "changes", "reason"),
    [
        ((93.99, 93.0), {}, "top1Accuracy never reached 94; its best is 93.99"),
        ((), {}, "has no row"),
        ((95.0,), {"synthetic": True}, "trained on synthetic data"),
    ],
)
def test_what_may_not_be_ranked_is_kept_apart_with_the_reason(tmp_path, values, changes, reason):
    path, reasons = run_entry.write(tmp_path, entry(values, replace(RECIPE, **changes)))
    assert path.parent == tmp_path / "not_an_entry" and reason in reasons[0]
    assert json.loads(path.read_text())["misc"]["violations"] == reasons


def test_a_threshold_of_one_s_own_does_not_lower_the_task_s():
    recipe = replace(RECIPE, threshold=90.0)
    (violation,) = entry_files.violations(entry((93.0,), recipe))
    assert violation.text == "top1Accuracy never reached 94; its best is 93"


def test_the_time_is_the_first_row_at_the_threshold():
    made = entry(cost_per_hour=10)
    assert made.first_hit() == (made.rows[1][1], 94)
    line = run_entry.summary(made, timed((90.0, 94.0, 93.9)))
    assert line.startswith("reached top1Accuracy 94 in epoch 2: 1080.0 s on the clock, $3.0000")
    miss = run_entry.summary(entry((93.0,)), timed((93.0,)))
    assert miss.startswith("did not converge: best top1Accuracy 93 of 94")
