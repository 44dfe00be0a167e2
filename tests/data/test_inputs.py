"""Both kinds of input keep the one interface: what is scored does not depend on how it came."""

from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf import recipes
from dawnbench_tf.data import inputs
from dawnbench_tf.data.inputs import Inputs, Placement
from dawnbench_tf.refusals import Refusal
from dawnbench_tf.scores import SCORES
from dawnbench_tf.tasks import TASKS

HERE = Placement(tf.distribute.get_strategy())


def answer(*arrays):
    """Logits that depend on an example alone: an image's pixels, or a question's ids."""
    if len(arrays) == 1:
        pixels = np.asarray(arrays[0])
        return pixels.reshape(len(pixels), -1)[:, :10]
    ids = np.asarray(arrays[0])
    scores = np.where(ids > 0, np.sin(ids * 12.9898 + np.arange(ids.shape[1])), -1e30)
    return np.stack([scores, scores[:, ::-1] * 0 + np.cos(ids) + np.where(ids > 0, 0, -1e30)], 1)


@pytest.fixture(scope="module", params=["digits/resnet8", "qa_mini/bidaf"])
def loaded(request):
    recipe = replace(recipes.get(request.param), synthetic="decoded")
    return recipe, inputs.of(recipe.task_row), inputs.load(recipe)


@pytest.mark.parametrize("batch_size", [64, 333])
def test_batches_and_single_examples_give_the_same_answers(loaded, batch_size):
    recipe, of_task, splits = loaded
    batches = of_task.test(splits, recipe, HERE, batch_size)
    prepare = of_task.prepare_test(recipe, HERE)
    prepared = [prepare(batch) for batch in batches]
    outputs = [answer(*(b if isinstance(b, tuple) else (b,))) for b in prepared]
    collected = of_task.collect(outputs, splits, HERE, batch_size)
    examples = of_task.one_by_one(splits, recipe)
    assert len(examples) == recipe.task_row.test_examples
    joined = of_task.join([answer(*example) for example in examples], splits)
    score = SCORES[recipe.task_row.scoring]
    references = of_task.references(splits)
    assert score(collected, references) == score(joined, references)
    for one, other in zip(_flat(collected), _flat(joined), strict=True):
        np.testing.assert_array_equal(one, other)


def _flat(outputs):
    return outputs if isinstance(outputs, tuple) else (outputs,)


def test_the_first_examples_are_the_test_s_own_and_scored_alone(loaded):
    recipe, of_task, splits = loaded
    few = of_task.first(splits, 7)
    examples = of_task.one_by_one(few, recipe)
    whole = of_task.one_by_one(splits, recipe)
    assert len(examples) == 7
    for one, other in zip(examples, whole[:7], strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)
    outputs = of_task.join([answer(*example) for example in examples], few)
    assert SCORES[recipe.task_row.scoring](outputs, of_task.references(few))


def test_what_is_saved_is_what_inference_checks(loaded, tmp_path):
    recipe, of_task, splits = loaded
    of_task.save(splits, tmp_path)
    of_task.check_saved(splits, tmp_path)


def test_every_kind_fills_the_whole_interface():
    kinds = {inputs.of(task) for task in TASKS.values()}
    assert len(kinds) == 2
    for kind in kinds:
        for name, value in kind._asdict().items():
            assert callable(value) or name in ("fixed_shape", "trial_size")
    assert all(isinstance(kind, Inputs) for kind in kinds)


def test_an_embedded_data_set_takes_no_folder():
    recipe = recipes.get("digits/resnet8")
    with pytest.raises(Refusal, match="--data_dir=here: digits is embedded and takes none"):
        inputs.load(recipe, "here")
