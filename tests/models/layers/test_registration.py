"""Configs of layers: what a saved file says of them."""

import pytest
import tensorflow as tf

from dawnbench_tf.models.layers.attention import Coattention

pytestmark = pytest.mark.both_kerases


def test_a_config_has_the_precision_and_whether_the_layer_is_trained():
    before = tf.keras.mixed_precision.global_policy()
    tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")
    try:
        config = Coattention().get_config()
    finally:
        tf.keras.mixed_precision.set_global_policy(before)
    layer = Coattention.from_config(config)
    assert layer.compute_dtype == "bfloat16" and layer.trainable
    layer.trainable = False
    assert not Coattention.from_config(layer.get_config()).trainable
