"""models.build, get and names: suggestions for unknown names, checks of arguments."""

import doctest
import math
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf import models
from dawnbench_tf.models import factories
from dawnbench_tf.models.layers.text import SpanLogits


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(ValueError, match="did you mean 'resnet56_tf'. Received: name='resnet56tf'"):
        models.build("resnet56tf")


def test_a_prefix_suggests_the_names_that_start_with_it():
    names = "'resnet50_cifar' or 'resnet50_v1' or 'resnet50_v1_5' or 'resnet50_v1_slim'"
    with pytest.raises(ValueError, match=names):
        models.get("resnet50")


def test_a_function_with_a_dot_for_its_colon_is_suggested():
    with pytest.raises(ValueError, match="or MODULE:FUNCTION; did you mean 'nets.mine:small'"):
        models.get("nets.mine.small")


def test_a_network_of_others_has_no_argument_of_ours():
    with pytest.raises(ValueError, match="`function` is not an argument .* num_classes, .* name"):
        models.build("keras.applications:ResNet50", function="networks:small")
    with pytest.raises(ValueError, match="did you mean 'networks:small'"):
        models.get("networks.py:small")
    for dtype in (tf.float64, np.float64):
        logits = models.build("resnet8_v1_pad", dtype=dtype).get_layer("logits")
        assert logits.compute_dtype == "float64"
    for name, dtype in [("resnet8_v1_pad", "float17"), ("bidaf", "int32"), ("bidaf", 16)]:
        with pytest.raises(ValueError, match=f"floating-point .* Received: dtype={dtype!r}"):
            models.build(name, dtype=dtype)


def test_names_match_a_pattern():
    names = models.names("resnet50*")
    assert "resnet50_v1" in names and all(name.startswith("resnet50") for name in names)
    assert models.names("*") == models.names() and models.names("nothing*") == []


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ({"weights": "imagenet"}, r"load_published\(model, file\)"),
        ({"include_top": False}, r'get_layer\("features"\)'),
        ({"classes": 5}, "use num_classes"),
    ],
)
def test_arguments_of_keras_applications_suggest_ours(argument, words):
    with pytest.raises(ValueError, match=words) as error:
        models.build("resnet8_v1_pad", **argument)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["resnet8_v1_pad", "bidaf"])
def test_an_unknown_argument_lists_the_known_ones(name):
    with pytest.raises(ValueError, match=f"`dept` is not an argument of build for {name}: its"):
        models.build(name, dept=8)
    with pytest.raises(ValueError, match="`num_classes` is not an argument of build for bidaf"):
        models.build("bidaf", num_classes=2)


READERS = [name for name in models.names() if models.get(name).inputs == "questions"]
LARGE = 5 * 10**7  # parameters; such a BERT's are counted by hand alone


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name == "bert_tiny_span" else pytest.mark.long)
        for name in READERS
        if models.get(name).parameters < LARGE
    ],
)
def test_a_reader_has_the_parameters_that_are_counted_by_hand(name):
    """The tests of each family hold the catalogue's number to a count by hand."""
    weights = models.build(name).trainable_weights
    assert sum(math.prod(weight.shape) for weight in weights) == models.get(name).parameters


def test_examples_in_documents_run():
    page = Path(__file__).parents[2] / "docs/models.md"
    for results in (
        doctest.testmod(models, optionflags=doctest.NORMALIZE_WHITESPACE),
        doctest.testfile(str(page), False, optionflags=doctest.NORMALIZE_WHITESPACE),
    ):
        assert results.attempted and not results.failed


def test_keras_s_names_of_layouts_are_accepted():
    model = models.build("resnet8_v1_pad", data_format="channels_first")
    assert model.input_shape == (None, 3, 32, 32)
    assert models.build("resnet8_v1_pad", data_format="channels_last").input_shape[-1] == 3


def test_float64_policies_give_float64_logits():
    policies = tf.keras.mixed_precision
    try:
        for dtype in ("float64", policies.Policy("float64"), None):
            policies.set_global_policy("float32" if dtype else "float64")
            settings = {"data_format": "NHWC", "synchronized": False}
            make = factories.layers(**settings, dtype=dtype, classes=factories.KERAS)
            assert make.to_float32(1.0).compute_dtype == "float64"
            assert SpanLogits(dtype=dtype).compute_dtype == "float64"
            assert SpanLogits(dtype="mixed_bfloat16").compute_dtype == "float32"
    finally:
        policies.set_global_policy("float32")


def test_num_classes_and_name_are_used():
    model = models.build("resnet8_v1_pad", num_classes=np.int64(7), name="mine")
    assert model.output_shape == (None, 7) and model.name == "mine"
    assert models.build("bert_tiny_span", layers=1, name="reader").name == "reader"


@pytest.mark.parametrize("classes", [0, -1, 2.5])
def test_num_classes_below_1_or_not_whole_is_refused(classes):
    words = f"`num_classes` should be a whole number of at least 1; .*num_classes={classes}"
    with pytest.raises(ValueError, match=words):
        models.build("resnet8_v1_pad", num_classes=classes)
