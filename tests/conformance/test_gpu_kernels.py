"""Each operation of the recipes' steps has a GPU kernel, by TensorFlow's registry of kernels."""

from dataclasses import fields

import pytest
import tensorflow as tf

from dawnbench_tf import models, recipes
from dawnbench_tf.models import networks
from tests.conformance.test_catalog import smallest
from tests.conformance.test_recipes import KERNELS, NAMES, covering


def changed_data(name):
    """Returns the settings of a recipe's data that are not the defaults."""
    data = recipes.get(name).data
    return {item.name for item in fields(data) if getattr(data, item.name) != item.default}


RECIPES = {*covering(NAMES), *covering(NAMES, changed_data)}
SETTINGS = [(name, "NHWC", recipes.get(name).precision) for name in sorted(RECIPES)] + [
    (name, layout, precision)
    for name in ("cifar10/airbench94_muon", "cifar10/wrn_22_6", "imagenet/resnet50_fastai")
    for layout in ("NHWC", "NCHW")
    for precision in ("float32", "mixed_float16", "mixed_bfloat16")
]


@pytest.mark.parametrize("kind", ["training_step", "evaluation_step"])
@pytest.mark.parametrize(("name", "layout", "precision"), SETTINGS)
def test_each_operation_has_a_gpu_kernel(kind, name, layout, precision, monkeypatch):
    recipe = recipes.get(name, precision=precision)
    if models.get(recipe.model).inputs == "images":
        build, small = networks.build, smallest(recipe.model)
        monkeypatch.setattr(
            networks, "build", lambda row, args, *classes: build(row, args | small, *classes)
        )
    assert KERNELS["missing"](KERNELS[kind](recipe, layout)) == {}
    tf.keras.backend.clear_session()


def test_an_operation_without_a_gpu_kernel_is_found():
    images, indices = tf.TensorSpec((4, 3), tf.uint8), tf.TensorSpec((2,), tf.int32)
    step = tf.function(lambda images, indices: tf.cast(tf.gather(images, indices), tf.float32))
    counts = KERNELS["missing"](step.get_concrete_function(images, indices).graph)
    assert counts == {"GatherV2 (int32, uint8)": 1}
