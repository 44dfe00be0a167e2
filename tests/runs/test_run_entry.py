"""The entry of a run in the published form, compared with three published entries."""

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from dawnbench_tf import recipes
from dawnbench_tf.machine import Machine
from dawnbench_tf.recipe.options import Credits, RunOptions
from dawnbench_tf.runs import Run, run_entry
from dawnbench_tf.submission.entry import check
from dawnbench_tf.submission.rules import Grade

PUBLISHED = sorted((Path(__file__).parents[1] / "fixtures/published").glob("*.json"))
MACHINE = Machine("2 CPU", "2cpu", {"tensorflow": "2.20.0", "gitRevision": "abc"})
RECIPE = recipes.get("cifar10/resnet56_tf")


def run(values, recipe=RECIPE):
    scores = recipe.task_row.columns[2:]
    rows = [
        {"epoch": n + 1, "hours": 0.1 + 0.2 * n, **dict.fromkeys(scores, value)}
        for n, value in enumerate(values)
    ]
    return Run(recipe, rows, {"train": 1.0})


def entry(values=(90.0, 94.0, 93.9), recipe=RECIPE, **credits):
    credits = Credits(author="Ada Lovelace", author_email="ada@example.com", **credits)
    options = RunOptions(credits=credits)
    return run_entry.training_entry(run(values, recipe), options, MACHINE, 100.0)


@pytest.mark.parametrize("published", PUBLISHED, ids=lambda path: path.stem)
def test_fields_and_columns_are_those_of_published_entries(tmp_path, published):
    theirs = json.loads(published.read_text())
    head = published.with_suffix(".tsv").read_text().splitlines()[0]
    values, name = (90.0, 94.0), "cifar10/resnet56_tf"
    if "f1Score" in head:
        values, name = (0.5, 0.76), "squad/bidaf_tf"
    elif "top5" in head:
        values, name = (76.2, 93.1), "imagenet/resnet50_tpu"
    path, _ = run_entry.write(tmp_path, entry(values, recipes.get(name), cost_per_hour=0.9))
    ours = json.loads(path.read_text())
    missing = set(theirs) - set(ours) - {"evalBatchSize"}  # of AmoebaNet's three alone
    assert missing <= {"codeURL", "commitHash"}  # optional, and the author's to add
    both = set(ours) & set(theirs)
    assert set(ours) - both <= {"usedBlacklist", "costPerHour"}  # which not all have
    assert {key: type(ours[key]) for key in both} == {key: type(theirs[key]) for key in both}
    own = path.with_suffix(".tsv").read_text().splitlines()[0]
    assert sorted(own.split()) == sorted(head.split())  # some in another order


def test_one_run_leaves_one_entry(tmp_path):
    """A missed entry is replaced after more training, and again by another author's name."""
    missed, _ = run_entry.write(tmp_path, entry((90.0,)))
    reached, _ = run_entry.write(tmp_path, entry())
    other, _ = run_entry.write(tmp_path / "other", entry((91.0, 94.0)))
    folder = reached.parent
    other = [p.rename(folder / p.name.replace("ada", "x")) for p in other.parent.iterdir()]
    renamed, _ = run_entry.write(tmp_path, replace(entry(), author="Bob", name="bob_a_b_c"))
    assert {*folder.iterdir()} == {renamed, renamed.with_suffix(".tsv"), *other}
    assert not list(missed.parent.iterdir())


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


def test_misc_holds_what_reviewers_asked_for():
    misc = entry().misc
    assert misc["recipe"]["learning_rate"] == 0.1 and misc["recipe"]["weight_decay"] == 5e-4
    assert misc["gitRevision"] == "abc" and misc["seed"] == 0 and misc["testExamples"] == 10_000
    assert misc["versions"] == {"tensorflow": "2.20.0"} and "clockSeconds" in misc
    assert not check(entry(), Grade.REVIEW)
    for skips in (False, True):
        own = entry(recipe=recipes.get("imagenet/resnet50_tpu", skip_blacklisted=skips))
        assert own.other == {"usedBlacklist": not skips}


@pytest.mark.parametrize(
    ("values", "changes", "reason"),
    [
        ((93.99, 93.0), {"threshold": 90.0}, "top1Accuracy never reached 94; its best is 93.99"),
        ((), {}, "has no row"),
        ((95.0,), {"synthetic": "decoded"}, "trained on synthetic data"),
        ((95.0,), {"train_examples": 200}, "trained on 200 examples; should be on all"),
    ],
)
def test_what_may_not_be_ranked_is_kept_apart_with_the_reason(tmp_path, values, changes, reason):
    path, reasons = run_entry.write(tmp_path, entry(values, replace(RECIPE, **changes)))
    assert path.parent == tmp_path / "not_an_entry/CIFAR10/train" and reason in reasons[0]
    assert json.loads(path.read_text())["misc"]["violations"] == reasons


def test_the_time_is_the_first_row_at_the_threshold():
    line = run_entry.describe_run(run((90.0, 94.0, 93.9)), cost_per_hour=10)
    assert line.startswith("reached top1Accuracy 94 in epoch 2: 1080.0 s on the clock, $3.00")
    miss = run_entry.describe_run(run((93.0,)), None)
    assert miss.startswith("did not converge: best top1Accuracy 93 of 94")


@pytest.mark.parametrize(
    ("author", "own"), [("Zoë", "zoë"), ("李雷", "李雷"), ("Ａｄａ", "ada"), ("...", "unnamed")]
)
def test_a_packaged_inference_entry_has_the_run_s_own_name(author, own):
    facts = {"runtime": "litert", "precision": "int8"}
    ours = run_entry.inference_entry(RECIPE, Credits(author), MACHINE, 0.5, 94.5, facts)
    name = run_entry.entry_name(author, ours.model, "2cpu", ours.framework)
    assert ours.name == name == f"{own}_resnet56-tf_2cpu_tensorflow-2.20-litert-int8"
    assert not check(replace(ours, author_email="a@b.c"))


def test_the_longest_texts_make_a_file_name_that_a_disk_takes():
    assert len(run_entry.entry_name(*["李" * 200] * 4).encode()) <= 250


def test_another_price_gives_another_cost_of_inference():
    facts = {"runtime": "litert", "precision": "int8"}
    credits = Credits("Ada", instance="p3.2xlarge")
    free = run_entry.inference_entry(RECIPE, credits, MACHINE, 0.5, 94.5, facts)
    assert free.hardware == "2 CPU (p3.2xlarge)" and free.misc["batchSize"] == 1
    assert free.cost is None and not check(replace(free, author_email="a@b.c"))
    priced = run_entry.with_price(free, 3.6)
    assert priced.cost == pytest.approx(5e-7) and priced.cost_per_hour is None
    stale = replace(priced, cost=1e-6)
    assert "cost should be 5e-07: 3.6 USD per hour" in check(stale)[0].text


def test_figures_that_were_changed_since_are_no_longer_ranked():
    changed = replace(entry(), rows=((1.0, 0.01, 95.0),))
    (violation,) = check(changed, Grade.RANKED)
    assert violation.rule == "as measured"
