"""The recipes' steps run wholly on a GPU, by TensorFlow's registry of kernels."""

from dataclasses import fields

import pytest
import tensorflow as tf

from dawnbench_tf import models, recipes
from tests.conformance.test_recipes import KERNELS, NAMES, build_smallest, covering


def changed_data(name):
    """Returns the settings of a recipe's data that are not the defaults."""
    data = recipes.get(name).data
    return {item.name for item in fields(data) if getattr(data, item.name) != item.default}


pytestmark = pytest.mark.skipif(
    not tf.test.is_built_with_cuda(), reason="this TensorFlow has no registry of CUDA kernels"
)
OWN = [name for name in NAMES if getattr(recipes.get(name).data, "tokenizer", "") != "spacy"]


def family(name):
    """Returns the family of a recipe's network, and its precision."""
    recipe = recipes.get(name)
    return {models.get(recipe.model).family, recipe.precision}


MUON = "cifar10/airbench94_muon"
TRAINED = sorted({*covering(OWN), *covering(OWN, changed_data)})
STEPS = [("training_step", name) for name in TRAINED]
STEPS += [("evaluation_step", name) for name in covering(OWN, family)]
CASES = [(*step, "NHWC", recipes.get(step[1]).precision) for step in STEPS]
CASES += [
    ("training_step", name, layout, precision)
    for name in (MUON, "imagenet/resnet50_fastai")
    for layout in ("NHWC", "NCHW")
    for precision in ("float32", "mixed_float16", "mixed_bfloat16")
]

# In the default suite; the steps that test_recipes.py lowers, too.
DEFAULT = ("training_step", MUON, "NHWC", recipes.get(MUON).precision)
assert DEFAULT in CASES
CASES = [
    pytest.param(*case, marks=() if case == DEFAULT else pytest.mark.long)
    for case in dict.fromkeys(CASES)
]


# A step copies these to the host, a few bytes each: seeds and sizes in Keras's dropout and
# stochastic depth, sizes in the gradient of a mean over images of a size that changes. It also
# copies the conditions of stochastic depth, float16's loss scale and moving averages.
COPIED = {
    "Prod -> AddV2.x",
    "Prod -> Pack.values",
    "Pack -> StatelessRandomGetKeyCounter.seed",
    "DynamicStitch -> Reshape.shape",
}


@pytest.mark.usefixtures("forgets_models")
@pytest.mark.parametrize(("kind", "name", "layout", "precision"), CASES)
def test_a_step_stays_on_the_gpu(kind, name, layout, precision, monkeypatch):
    recipe = recipes.get(name, precision=precision)
    images = models.get(recipe.model).inputs == "images"
    if images:
        build_smallest(recipe, monkeypatch)
    step = KERNELS[kind](recipe, layout)
    assert KERNELS["missing"](step) == {}
    if images:
        copies = KERNELS["copies_to_host"](step)
        assert {name for name in copies if not name.endswith(".cond")} <= COPIED


def test_an_operation_without_a_gpu_kernel_is_found():
    images, indices = tf.TensorSpec((4, 3), tf.uint8), tf.TensorSpec((2,), tf.int32)
    step = tf.function(lambda images, indices: tf.cast(tf.gather(images, indices), tf.float32))
    counts = KERNELS["missing"](step.get_concrete_function(images, indices).graph)
    assert counts == {"GatherV2 (int32, uint8)": 1}


@pytest.mark.parametrize(("dtype", "copies"), [("int32", {"Cast -> AddV2.x": 1}), ("int64", {})])
def test_int32_arithmetic_is_found_to_copy_to_the_host(dtype, copies):
    """The result is an index of a gather on the device; a called function computes it."""
    indices = tf.function(lambda values: tf.cast(values, dtype) + 1)
    step = tf.function(lambda values: tf.gather(values, indices(values)))
    graph = step.get_concrete_function(tf.TensorSpec((3,))).graph
    assert KERNELS["copies_to_host"](graph) == copies
