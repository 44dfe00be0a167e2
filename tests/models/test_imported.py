"""Networks of others, MODULE:FUNCTION: their logits, precision, and what is refused."""

import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf import models, recipes
from dawnbench_tf.data import dataset
from dawnbench_tf.data.placement import Placement
from dawnbench_tf.refusals import Refusal

MODULE = """
import tensorflow as tf
keras = tf.keras

def small(num_classes, input_shape):
    dense = keras.layers.Dense(num_classes, name="logits")
    pool = keras.layers.GlobalAveragePooling2D()
    return keras.Sequential([keras.Input(input_shape), keras.layers.Conv2D(4, 3), pool, dense])

class Model(keras.Model):
    def __init__(self, classes):
        super().__init__()
        self.dense = keras.layers.Dense(classes)
    def call(self, x):
        return self.dense(keras.layers.Flatten()(x))

def subclassed(classes):
    return Model(classes)

def softmax(classes, input_shape):
    flat, dense = keras.layers.Flatten(), keras.layers.Dense(classes)
    inner = keras.Sequential([flat, dense, keras.layers.Softmax()])
    x = keras.Input(input_shape)
    return keras.Model(x, keras.layers.Activation("linear", dtype="float32")(inner(x)))

def any_arguments(**kwargs):
    return small(**kwargs)

def width(classes, width):
    return number()

def three():
    return keras.Sequential([keras.layers.Flatten(), keras.layers.Dense(3)])

def fails(classes):
    raise KeyError("x\\ny")

def number():
    return 3

def exits():
    raise SystemExit(2)

def two(classes, input_shape):
    x = keras.Input(input_shape)
    y = keras.layers.Dense(classes)(keras.layers.Flatten()(x))
    return keras.Model(x, [y, y])
"""


@pytest.fixture
def networks(tmp_path, monkeypatch):
    (tmp_path / "networks_of_mine.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)


@pytest.mark.both_kerases
def test_an_application_s_logits_are_its_own():
    arguments = {"input_shape": (32, 32, 3), "weights": None, "classifier_activation": None}
    theirs = tf.keras.applications.MobileNetV2(**arguments, classes=7)
    ours = models.build("keras.applications:MobileNetV2", num_classes=7)
    assert ours.name == "MobileNetV2" and ours.output.dtype in ("float32", tf.float32)
    ours.set_weights(theirs.get_weights())
    images = np.random.default_rng(0).normal(size=(2, 32, 32, 3)).astype(np.float32)
    np.testing.assert_allclose(ours(images), theirs(images), atol=1e-6)


def test_applications_have_no_softmax_and_no_preprocessing_whatever_their_arguments(monkeypatch):
    def resnet(include_top=True, weights="imagenet", input_shape=None, classes=1000, **kwargs):
        assert kwargs == {"classifier_activation": None} and weights is None
        layers = tf.keras.layers  # EfficientNetB0 to B7 have no argument against their Rescaling
        inputs, rescaling = tf.keras.Input(input_shape), layers.Rescaling(1 / 255, 3)
        return tf.keras.Sequential([inputs, rescaling, layers.Flatten()])

    resnet.__module__ = tf.keras.Model.__module__
    monkeypatch.setattr(tf.keras.applications, "Like", resnet, raising=False)
    model = models.build("keras.applications:Like", num_classes=12, input_shape=(2, 2, 3))
    images = tf.random.normal((2, 2, 2, 3))
    np.testing.assert_array_equal(model(images), tf.reshape(images, (2, 12)))


@pytest.mark.both_kerases
@pytest.mark.parametrize("name", ["any_arguments", "subclassed"])
def test_functions_of_a_module_build_networks_in_any_precision(networks, name):
    before = tf.keras.mixed_precision.global_policy().name
    model = models.build(f"networks_of_mine:{name}", num_classes=5, dtype="mixed_bfloat16")
    images = tf.zeros((2, 32, 32, 3))
    assert model(images).shape == (2, 5) and model(images).dtype == tf.float32
    assert all(w.dtype in ("float32", tf.float32) for w in model.trainable_weights)
    dense = [layer for layer in model._flatten_layers() if isinstance(layer, tf.keras.layers.Dense)]
    assert [layer.compute_dtype for layer in dense] == ["bfloat16"]
    assert tf.keras.mixed_precision.global_policy().name == before


REFUSED = [
    ("keras.applications:MobilNetV2", "has no function MobilNetV2; did you mean MobileNetV2?"),
    ("networks_of_mine:softmax", "should return logits; its outputs are those of a softmax"),
    ("networks_of_mine:width", "missing .* 'width'; it is called with `input_shape` and"),
    ("networks_of_mine:three", "should return logits \\(batch, 10\\), not \\(None, 3\\); "),
    ("networks_of_mine:fails", "raised KeyError: 'x"),
    ("networks_of_mine:exits", "raised SystemExit: 2"),
    ("networks_of_mine:two", "should return one output, logits \\(batch, 10\\)"),
    ("networks_of_mine:number", "should return a tf.keras.Model of .*, not builtins.int"),
    ("no_such_module:x", "No module named 'no_such_module'; no_such_module.py should be in"),
]


def test_what_is_no_network_is_refused_in_a_line(networks):
    placement = Placement(tf.distribute.get_strategy())
    for name, line in REFUSED:
        recipe = recipes.get("digits/resnet8", model=name)
        with pytest.raises(Refusal, match=f"^--model={name}: .*{line}") as refused:
            dataset.from_splits(recipe, None, placement).network()
        assert "\n" not in str(refused.value)


def test_a_network_of_others_has_none_of_our_settings():
    recipe = recipes.get("digits/resnet8", model="keras.applications:ResNet50", final_survival=0.5)
    placement = Placement(tf.distribute.get_strategy())
    with pytest.raises(Refusal, match="--final_survival=0.5: keras.applications:ResNet50 has none"):
        dataset.from_splits(recipe, None, placement).network()
    for settings in ({"data_format": "NCHW"}, {"synchronized": True}):
        with pytest.raises(ValueError, match="`.*` should be (NHWC|False) for keras.applications"):
            models.build("keras.applications:ResNet50", **settings)
