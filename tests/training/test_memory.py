"""The predicted memory of a training step, against TensorFlow's own allocator."""

import runpy
from pathlib import Path

import pytest
import tensorflow as tf

from dawnbench_tf import recipes
from dawnbench_tf.data import dataset
from dawnbench_tf.options import RunOptions
from dawnbench_tf.refusals import Refusal
from dawnbench_tf.training import fitting, memory, speed_test

BENCHMARK = runpy.run_path(str(Path(__file__).parents[2] / "scripts/benchmark_memory.py"))
N = 100
SQUARE = 4 * N * N  # bytes


def peak(function):
    graph = tf.function(function).get_concrete_function(tf.TensorSpec((N, N))).graph
    return memory._peak(graph)


@pytest.mark.parametrize(
    ("function", "squares"),
    [
        (lambda x: tf.nn.relu(x @ x), 1),  # in place
        (lambda x: tf.nn.relu(x @ x) @ x, 2),
        (lambda x: tf.reshape(x @ x, [-1]), 1),  # the same buffer
        (lambda x: (x @ x) @ ((x @ x) @ x), 3),  # two operands and the result
        (lambda x: tf.reduce_sum(((x @ x) @ x) @ x), 2),  # each is freed once the next is there
        (lambda x: tf.function(lambda y: (y @ y) @ y)(x) @ x, 2),  # inside of a function
        (lambda x: tf.cond(x[0, 0] > 0, lambda: (x @ x) @ (x @ x), lambda: x), 3),
    ],
)
def test_the_peak_of_a_small_graph_is_counted_by_hand(function, squares):
    assert SQUARE * squares <= peak(function) <= SQUARE * squares + 64


LONG = ("cifar10/airbench94:256", "cifar10/preact164:8")


@pytest.mark.parametrize(
    "case", ["digits/resnet8:256", *(pytest.param(case, marks=pytest.mark.long) for case in LONG)]
)
def test_the_prediction_is_within_a_fifth_of_what_tensorflow_allocates(case):
    need, step = BENCHMARK["measure"](case)
    assert need.step == pytest.approx(step, rel=memory.MARGIN)


def test_variables_are_weights_slots_and_images():
    data = dataset.open(recipes.get("digits/resnet8"))
    model = fitting.build(data)
    slots = model.optimizer.variables
    variables = [*model.variables, *(slots() if callable(slots) else slots)]
    sizes = [variable.dtype.size * variable.shape.num_elements() for variable in variables]
    assert memory.predict(model, data).variables == pytest.approx(sum(sizes) + 1297 * 3072, 1e-3)


def test_the_phase_that_needs_most_is_predicted():
    def need(**changes):
        data = dataset.open(recipes.get("digits/resnet8", epochs=3, **changes))
        return memory.predict(fitting.build(data), data)

    plain, half = need(), need(batch_size=32)
    growing = need(image_sizes=(16, 32), image_size_epochs=(1,))
    assert growing.step == pytest.approx(plain.step, 0.01)
    assert need(batch_size=32, later_batch_sizes=(64,), batch_size_epochs=(1,)) == plain
    assert half.step == pytest.approx(plain.step / 2, 0.02)
    assert plain.largest_batch(plain.variables + 1.2 * plain.step) in (63, 64)
    assert plain.largest_batch(0) == 0


@pytest.mark.parametrize(
    ("options", "predicted"),
    [
        ({"strategy": "one_device"}, True),
        pytest.param({"jit_compile": True}, False, marks=pytest.mark.long),
    ],
)
def test_a_speed_test_predicts_one_device_without_xla(options, predicted):
    recipe = recipes.get("digits/resnet8")
    result = speed_test.measure(recipe, RunOptions(max_steps=2, **options))
    assert bool(result.need) == predicted == ("largestBatch" in result.facts())


def test_a_step_that_does_not_fit_is_refused_before_it_runs(monkeypatch):
    monkeypatch.setattr(memory, "limit", lambda: 20 * 2**20)
    with pytest.raises(
        Refusal, match="--batch_size=64: .* GiB for a step of 64 by .* of 1?[0-9] fit"
    ):
        speed_test.measure(recipes.get("digits/resnet8"), RunOptions(max_steps=2))
