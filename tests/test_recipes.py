"""Recipes: bounds, names, evidence as published."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest

from dawnbench_tf import recipes
from dawnbench_tf.recipe import Published
from dawnbench_tf.refusals import Refusal

PUBLISHED = Path(__file__).parent / "fixtures/published"


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"batch_size": 0}, "--batch_size=0: should be at least 1"),
        ({"batch_size": 1298}, "--batch_size=1298: should be at most digits's 1297 examples"),
        ({"epochs": -1}, "--epochs=-1: should be at least 1"),
        ({"learning_rate": float("nan")}, "--learning_rate=nan: should be a finite number"),
        ({"threshold": 100.5}, "--threshold=100.5: top1Accuracy should be over 0, at most 100"),
        ({"learning_rate": 0.0}, "--learning_rate=0.0: should be over 0"),
        ({"schedule_factors": (0, 0, 0)}, "--schedule_factors=0,0,0: one of them should be over 0"),
        ({"threshold": 0}, "--threshold=0: top1Accuracy should be over 0, at most 100"),
        ({"optimizer": "lamb"}, "--optimizer=lamb: should be one of sgd, adam"),
        ({"schedule_epochs": (2, 1, 3)}, "--schedule_epochs=2,1,3: should rise"),
        (
            {"schedule_epochs": (1,)},
            "--schedule=linear: takes a factor for each of schedule_epochs; found 1",
        ),
        ({"standardize": "channel"}, "--standardize=channel: takes three figures each"),
    ],
)
def test_what_is_out_of_range_is_refused_by_its_flag(change, line):
    with pytest.raises(Refusal, match="^" + line.replace("(", r"\(")):
        replace(recipes.get("digits/resnet8"), **change)


def test_an_unknown_recipe_is_answered_with_the_nearest():
    with pytest.raises(Refusal, match="did you mean cifar10/resnet56_tf?"):
        recipes.get("cifar10/resnet56")


def test_evidence_is_what_the_published_files_say():
    items = [(row, item) for row in recipes.rows().values() for item in row.evidence]
    published = [(row, item) for row, item in items if isinstance(item, Published)]
    assert len(published) == 5
    for recipe, item in published:
        path = PUBLISHED / Path(item.entry).name
        task = recipe.task_row
        with open(path.with_suffix(".tsv"), encoding="utf-8") as file:
            rows = [
                {name: float(value) for name, value in row.items()}
                for row in csv.DictReader(file, delimiter="\t")
            ]
        first = next(row for row in rows if row[task.metric] >= task.threshold)
        assert item.hours == round(first["hours"], 4)
        assert item.best == round(max(row[task.metric] for row in rows), 4)
        assert item.hardware == json.loads(path.read_text())["hardware"]
        if task.inputs == "images":  # the reader's "epochs" are of 1,000 steps
            assert recipe.epochs == len(rows)


def test_the_list_names_every_recipe_and_its_evidence():
    table = recipes.table()
    assert all(name in table for name in recipes.rows())
    assert "published: 10.0457 h, best 94.31, 1 K80" in table
