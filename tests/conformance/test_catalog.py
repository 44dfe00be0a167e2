"""Properties of every model in the catalogue."""

import math

import pytest
import tensorflow as tf

from dawnbench_tf import models


@pytest.mark.parametrize("name", models.names())
def test_parameters_are_the_source_s_exactly(name):
    model = models.build(name)
    assert sum(math.prod(w.shape) for w in model.trainable_weights) == models.get(name).parameters
    assert model.name == name and model.output_shape == (None, 10)
    assert model.outputs[0].dtype == tf.float32


def test_no_family_is_named_like_a_variant():
    families = {models.get(name).family for name in models.names()}
    assert not families & set(models.names())
