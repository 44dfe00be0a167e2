"""Tasks: names, JSON, and what a task that leaves numbers open has in common with a whole one."""

import re
from dataclasses import replace

import numpy as np
import pytest

from dawnbench_tf import recipes
from dawnbench_tf.data import dataset
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import Refusal
from dawnbench_tf.tasks import TASKS, Task, find_task

WHOLE = Task("flowers", 90, train_examples=80, test_examples=20, classes=3, image_size=32)


@pytest.mark.parametrize(
    ("text", "data_dir", "name"),
    [
        ("folder", "/data/my flowers/", "my-flowers"),
        ("folder", "/data/flowers.2024", "flowers.2024"),
        ("npz", "/data/mnist.npz", "mnist"),
        ("tfds:oxford_flowers102", "/data/tfds", "oxford-flowers102"),
        ("squad_json", "", "squad_json"),
    ],
)
def test_a_task_is_named_after_its_data(text, data_dir, name):
    assert find_task(text, data_dir).name == name
    assert find_task(text, data_dir, "mine").name == "mine"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("foldr", "did you mean folder?"),
        ("tfds", "should be folder, npz, tfds:NAME"),
        ("npz:", "should be folder, npz, tfds:NAME"),
        ("npz:x", "should be folder"),
        ("cifar", "did you mean cifar10?"),
    ],
)
def test_an_unknown_task_is_refused_with_the_nearest(text, hint):
    with pytest.raises(Refusal, match=f"^--task={text}: {hint}".replace("?", r"\?")):
        find_task(text)


def test_values_and_from_values_are_inverse():
    for task in (WHOLE, *TASKS.values(), replace(TASKS["squad"], train_examples=9)):
        assert Task.from_values(task.values()) == task
    assert [task.values() for task in TASKS.values()] == list(TASKS)  # JSON has their names
    assert Task.from_values("digits") is TASKS["digits"]


@pytest.mark.parametrize(
    "values", [{"name": "a", "benchmark": True}, {"name": "a", "threshold": "90"}, {"nam": "a"}]
)
def test_stated_tasks_of_another_form_are_refused(values):
    with pytest.raises(ValueError):
        Task.from_values(values)


@pytest.mark.parametrize("change", [{"folder": "Flowers"}, {"benchmark": True}, {"blacklisted": 3}])
def test_a_task_of_your_own_has_no_settings_of_the_librarys(change):
    with pytest.raises(Refusal, match=f"^--{next(iter(change))}=.*: is for tasks of the library"):
        Recipe(task=Task("flowers", 90, **change), model="resnet8_v1_pad")


def test_numbers_that_are_left_open_do_not_differ():
    assert WHOLE.difference(Task("flowers")) == WHOLE.difference(WHOLE) == ""
    assert WHOLE.difference(Task("flowers", 80)) == "threshold"
    assert WHOLE.difference(Task("trees", 90)) == "name"
    assert WHOLE.difference(replace(WHOLE, jpegs=True)) == "jpegs"
    part = replace(TASKS["squad"], train_examples=9)
    assert part.difference(TASKS["squad"]) == ""  # its files may have any number


def test_a_recipe_without_a_name_gets_that_of_its_data():
    base = recipes.get("own/photos", threshold=90.0)
    assert recipes.named_by(base, "/data/flowers", "pets").task.name == "pets"
    named = recipes.named_by(base, "/data/flowers")
    assert (named.name, named.whole_task.name) == ("flowers/photos", "flowers")
    assert recipes.named_by(named, "/data/trees") == named
    assert recipes.named_by(recipes.get("digits/resnet8"), "x").name == "digits/resnet8"


@pytest.mark.parametrize(
    ("task", "threshold", "words"),
    [
        ({}, 0.9, "top1Accuracy is in percent; did you mean 90?"),
        ({}, 1, "did you mean 100?"),
        ({}, 101, "top1Accuracy should be over 0, at most 100$"),
        ({"classes": 2}, 50, "is chance, 50 % with 2 classes"),
        ({"classes": 100, "scoring": "top1_and_top5"}, 5, "is chance, 5 % with 100 classes"),
        ({"scoring": "squad"}, 75, "f1Score should be over 0, at most 1; did you mean 0.75?"),
    ],
)
def test_a_threshold_in_another_unit_or_of_chance_is_refused(task, threshold, words):
    with pytest.raises(Refusal, match=re.escape(words).replace(r"\$", "$")):
        Task("flowers", threshold, **task)
    with pytest.raises(Refusal, match=re.escape(words).replace(r"\$", "$")):
        own = Task("flowers", **task)
        recipes.get(recipes.base_of(own), task=own, threshold=float(threshold))
    Task("flowers", 1.0, scoring="squad")
    Task("flowers", 50.5, classes=2)


@pytest.mark.parametrize("values", [{"classes": np.int64(3)}, {"reader": None}, {"jpegs": 1}])
def test_a_value_that_json_has_not_is_refused_when_the_task_is_made(values):
    with pytest.raises(Refusal, match=f"--{next(iter(values))}=.*: should be "):
        Task("flowers", 90, **values)


def test_a_threshold_of_chance_is_refused_when_the_classes_are_known():
    recipe = Recipe(task=Task("flowers", 30), model="resnet8_v1_pad")
    x, y = np.zeros((6, 8, 8, 3), np.uint8), np.arange(6) % 3
    with pytest.raises(Refusal, match="--threshold=30.*is chance, 33.3333 % with 3 classes"):
        dataset.open(recipe, examples=(x, y, x, y))
