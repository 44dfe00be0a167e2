"""A task of one's own from end to end: trained, gone on with, timed, ranked."""

import gc
import json

import numpy as np
import pytest
from tensorflow.python.framework.func_graph import FuncGraph

from dawnbench_tf import infer, leaderboard, recipes, run_folder, runs
from dawnbench_tf.data import dataset
from dawnbench_tf.data.own import arrays
from dawnbench_tf.recipe import Images, Recipe
from dawnbench_tf.recipe.options import RunOptions
from dawnbench_tf.refusals import Refusal
from dawnbench_tf.submission.entry import check, read_entry
from dawnbench_tf.tasks import Task
from dawnbench_tf.train import train


def colours(count, seed=0):
    """Returns images of three classes, each of one colour with noise, and their labels."""
    labels = np.tile(np.arange(3), count)
    noise = np.random.default_rng(seed).integers(0, 60, (3 * count, 8, 8, 3), np.uint8)
    return np.eye(3, dtype=np.uint8)[labels][:, None, None] * 150 + noise, labels


DATA = (*colours(16), *colours(6, seed=1))
RECIPE = Recipe(
    task=Task("colours", threshold=90),
    model="resnet8_v1_pad",
    epochs=20,
    batch_size=8,
    data=Images(standardize="channel", channel_mean=(0.3,) * 3, channel_deviation=(0.3,) * 3),
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return train(RECIPE, output=tmp_path_factory.mktemp("own") / "run", data=lambda: DATA)


def test_a_run_records_the_task_with_its_numbers(run):
    task = runs.read(run.folder).recipe.whole_task
    expected = Task("colours", 90, train_examples=48, test_examples=18, classes=3, image_size=8)
    assert run.reached and task == expected
    assert json.loads((run.folder / "run.json").read_text())["task"]["classes"] == 3


def graphs():
    gc.collect()
    items = [item for item in gc.get_objects() if isinstance(item, FuncGraph)]
    return sum(len(graph.get_operations()) > 100 for graph in items)


def test_each_class_has_its_accuracy_and_the_mistakes_are_drawn(tmp_path):
    recipe, before = RECIPE.with_values(epochs=1, learning_rate=0.01), graphs()
    run = train(recipe, output=tmp_path / "run", data=DATA)
    assert graphs() <= before  # a graph holds weights and images
    opened = dataset.from_splits(run.recipe, arrays.to_splits(DATA, run.recipe))
    answers = np.concatenate([run.model()(*example) for example in opened.examples()]).argmax(1)
    right = {str(c): 100 * np.mean(answers[DATA[3] == c] == c) for c in range(3)}
    stated = run.entry.misc["classAccuracy"]
    assert stated == pytest.approx(right) and [*stated.values()] == sorted(right.values())
    assert (run.folder / "mistakes.png").exists() == (min(right.values()) < 100)
    again = train(recipe, output=run.folder, data=DATA)  # which evaluates nothing
    assert again.entry.misc["classAccuracy"] == stated


def test_its_entry_states_the_task_and_breaks_no_rule(run):
    entry = read_entry(run.entry_path)
    assert run.entry_path.parts[-3:-1] == ("colours", "train")
    assert entry.task == run.recipe.whole_task and not check(entry)


def test_a_finished_run_is_found_again_with_the_same_data_only(run):
    assert train(RECIPE, output=run.folder, data=DATA).rows == run.rows
    with pytest.raises(Refusal, match="colours train: should hold 48 examples, found 36"):
        train(RECIPE, output=run.folder, data=(*colours(12), *DATA[2:]))


def test_it_is_timed_and_ranked_apart(run):
    options = infer.Options(model=str(run.folder), runtime="function", passes=1)
    entry = infer.infer(options, data=DATA)
    assert entry.score == run.rows[-1]["top1Accuracy"] and entry.task.name == "colours"
    ranking = leaderboard.rank([run.folder], dataset="colours")
    assert [table.figure.phase for table in ranking.tables] == ["train", "inference"]
    whole = leaderboard.rank([run.folder])
    mine = {table.dataset for table in whole.tables for row in table.rows if row.mine}
    assert mine == {"colours"}
    text = leaderboard.format_ranking(ranking.tables[0], 10)
    assert text.startswith("colours (your own: top1Accuracy 90 on 18 examples), training time\n")


def test_tasks_of_one_name_and_other_goals_are_ranked_apart(run, tmp_path):
    easier = RECIPE.with_values(task=Task("colours", threshold=50), seed=1)
    other = train(easier, output=tmp_path / "other", data=DATA)
    ranking = leaderboard.rank([run.folder, other.folder], dataset="colours")
    goals = [table.task.threshold for table in ranking.tables if table.figure.phase == "train"]
    assert goals == [50, 90]


@pytest.mark.parametrize("name", ["cifar10", "CIFAR10", "Squad", "train"])
def test_a_task_of_your_own_can_not_take_a_name_of_the_library(name):
    with pytest.raises(Refusal, match=f"--task_name={name}: is a name of this library's"):
        Recipe(task=Task(name, threshold=11), model="resnet8_v1_pad")


@pytest.mark.long
def test_questions_of_another_number_are_no_entry_of_squad(tmp_path, monkeypatch):
    from dawnbench_tf.data import qa_mini, squad

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name, count in ((squad.TRAIN, 8), (squad.TEST, 2)):
        (tmp_path / name).write_bytes(qa_mini.write_json(count, 0, name))
    changes = {"word_vectors": "none", "batch_size": 8, "epochs": 1, "threshold": 1e-9}
    recipe = recipes.get("squad/bidaf_tf", model="bidaf_50", **changes)
    run = train(recipe, RunOptions(data_dir=str(tmp_path)), tmp_path / "run")
    task = run.recipe.whole_task
    assert (task.train_examples, task.test_examples, task.name) == (48, 12, "squad")
    text = "trained and tested on 48 train, 12 test examples; squad has 87,599 and 10,570"
    assert any(text in violation for violation in run.entry.misc["violations"])
    assert run.entry_path.is_relative_to(tmp_path / "run" / run_folder.NOT_RANKED)


def test_a_stated_task_can_not_change_the_librarys(tmp_path):
    with pytest.raises(ValueError, match="=cifar10: is a name of this library's"):
        Task.from_values({"name": "cifar10", "threshold": 90.0})
