import pytest

from dawnbench_tf import models


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(ValueError, match="did you mean 'resnet56_tf'. Received: name='resnet56tf'"):
        models.build("resnet56tf")


def test_a_variant_is_importable_by_its_name():
    from dawnbench_tf.models import resnet8_v1_pad

    assert resnet8_v1_pad(num_classes=7).output_shape == (None, 7)
    with pytest.raises(AttributeError, match="no attribute 'resnet9'"):
        models.resnet9  # noqa: B018


def test_under_keras_3_the_same_library_builds_and_trains(under_keras_3):
    program = """
import math
import tensorflow as tf
from dawnbench_tf import models
assert tf.keras.__version__.startswith("3.")
for name in models.names():
    weights = models.build(name).trainable_weights
    assert sum(math.prod(w.shape) for w in weights) == models.get(name).parameters, name
model = models.build("resnet56_stochastic", depth=8, input_shape=(8, 8, 3))
model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(tf.random.normal((8, 8, 8, 3)), tf.range(8), verbose=0)
"""
    under_keras_3(program)
