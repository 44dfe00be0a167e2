"""models.build, get and names: what each family refuses, suggestions for unknown names."""

import doctest
import math
import re
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf import models
from dawnbench_tf.models import factories
from dawnbench_tf.models.layers.text import SpanLogits

REFUSED = [  # name, arguments of `build`, words
    ("resnet56tf", {}, "did you mean 'resnet56_tf'? Received: name='resnet56tf'"),
    ("resnet50", {}, "'resnet50_cifar' or 'resnet50_v1' or 'resnet50_v1_5' or 'resnet50_v1_slim'"),
    ("nets.mine.small", {}, "or MODULE:FUNCTION; did you mean 'nets.mine:small'"),
    ("networks.py:small", {}, "did you mean 'networks:small'"),
    ("resnet8_v1_pad", {"dept": 8}, "`dept` is not an argument of build for resnet8_v1_pad: its"),
    ("bidaf", {"dept": 8}, "`dept` is not an argument of build for bidaf: its"),
    ("bidaf", {"num_classes": 2}, "`num_classes` is not an argument of build for bidaf"),
    ("resnet8_v1_pad", {"weights": "imagenet"}, "load_published(model, file)"),
    ("resnet8_v1_pad", {"include_top": False}, 'get_layer("features")'),
    ("resnet8_v1_pad", {"classes": 5}, "use num_classes"),
    ("resnet8_v1_pad", {"num_classes": 0}, "whole number of at least 1; for features"),
    ("resnet8_v1_pad", {"num_classes": 2.5}, "Received: num_classes=2.5"),
    ("resnet8_v1_pad", {"dtype": "float17"}, "floating-point dtype or policy of Keras"),
    ("bidaf", {"dtype": "int32"}, "Received: dtype='int32'"),
    ("bidaf", {"dtype": 16}, "Received: dtype=16"),
    ("resnet8_v1_pad", {"data_format": "NHCW"}, "`data_format` should be one of"),
    ("resnet8_v1_pad", {"input_shape": (3, 32, 32)}, "should be (height, width, channels) in NHWC"),
    ("resnet8_v1_pad", {"input_shape": (32, 32)}, "`input_shape` should be"),
    ("resnet8_v1_pad", {"input_shape": (32, 32, None)}, "Received: input_shape=(32, 32, None)"),
    (
        "resnet8_v1_pad",
        {"input_shape": (32, 32, 3), "data_format": "NCHW"},
        "should be (channels, height, width) in NCHW, with sides of at least 4",
    ),
    ("resnet9", {"input_shape": (4, 4, 3)}, "with sides of at least 8"),
    ("airbench94", {"input_shape": (16, 17, 3), "widths": (8,) * 4}, "sides of at least 17"),
    ("resnet50_v1_5", {"input_shape": (31, 31, 3)}, "with sides of at least 32"),
    ("resnet50_v1_5", {"stem": "cifar", "input_shape": (7, 7, 3)}, "with sides of at least 8"),
    ("amoebanet_d", {"cells": 4}, "`cells` should be a multiple of 3. Received: cells=4"),
    ("amoebanet_d", {"filters": 0}, "`filters` should be a multiple of 16. Received: filters=0"),
    ("amoebanet_d", {"dropout": 1.0}, "`dropout` should be in [0, 1). Received: dropout=1.0"),
    (
        "amoebanet_d",
        {"cells": 3, "filters": 16, "auxiliary": True, "input_shape": (None, None, 3)},
        "should be False unless the sides of `input_shape` are known and at least 80 pixels",
    ),
    ("bert_tiny_span", {"heads": 5}, "`hidden` should be a multiple of `heads`. Received: hidden"),
    ("bert_tiny_span", {"cls_id": 0}, "`cls_id` and `sep_id` should be ids below 30522. Received"),
    ("bert_tiny_span", {"pieces": 40, "cls_id": 9, "sep_id": 40}, "should be ids below 40"),
    ("bert_tiny_span", {"positions": 3}, "`positions` should be at least 4"),
    ("bert_tiny_span", {"dropout": 1}, "`dropout` should be"),
    ("bidaf", {"trained_words": 1}, "`trained_words` should be at least 2. Received: trained"),
    ("bidaf", {"hidden": 0}, "`hidden` should be at least 1. Received: hidden=0"),
    ("bidaf", {"dropout": 1}, "`dropout` should be"),
    ("drqa", {"layers": 0}, "`layers` should be"),
    ("drqa", {"tags": (1, 0)}, "`entities` should be"),
    ("drqa", {"dropout": 1.0}, "`dropout` should be"),
    ("fastfusionnet", {"hidden": 0}, "`hidden` should be"),
    ("fastfusionnet", {"tags": (0, 1)}, "`pos` should be"),
    ("fastfusionnet", {"dropout": 1.0}, "`dropout` should be"),
    ("qanet", {"heads": 5}, "`hidden` should be a multiple of `heads`"),
    ("qanet", {"depth": 0}, "`depth` should be at least 1"),
    ("qanet", {"layer_dropout": 1.0}, "`layer_dropout` should be in"),
    ("qanet_tpu", {"hidden": 10, "heads": 4}, "`hidden` should be a multiple of `heads`"),
    ("resnet20_tf", {"depth": 57}, "`depth` should be 6n+2 with basic blocks, n >= 1. Rec"),
    ("resnet20_tf", {"depth": 21, "block": "bottleneck"}, "should be 9n+2 with bottleneck blocks"),
    ("resnet20_tf", {"depth": 2}, "Received: depth=2"),
    ("resnet20_tf", {"block": "dense"}, "`block` should be one of"),
    ("resnet20_tf", {"shortcut": "none"}, "`shortcut` should be one of"),
    ("resnet20_tf", {"preactivation": True}, "`preactivation` should be one of [None, 'first'"),
    ("resnet20_tf", {"strided": "last"}, "`strided` should be one of ['1x1', '3x3']. Received"),
    ("resnet20_tf", {"padding": "valid"}, "`padding` should be one of ['symmetric', 'same']."),
    ("resnet20_tf", {"final_survival": 1.1}, "should be in (0, 1]. Received: final_survival=1.1"),
    ("wrn_16_8", {"depth": 20}, "`depth` should be 6n+4 with basic blocks"),
    ("wrn_16_8", {"widen": 0}, "`widen` should be at least 1"),
    ("resnext29_8x64d", {"cardinality": 0}, "`cardinality` should be at least 1"),
    ("densenet_bc_100_12", {"depth": 101}, "`depth` should be 6n+4 in DenseNets-BC"),
    ("densenet_bc_100_12", {"growth": 0}, "`growth` should be at least 1"),
    ("densenet_bc_100_12", {"compression": 0}, "should be in (0, 1]. Received: compression=0"),
    ("resnet50_v1_5", {"depth": 51}, "`depth` should be one of [18, 26, 34, 50, 56, 101, 152]"),
    ("resnet50_v1_5", {"version": "v3"}, "`version` should be one of ['v1', 'v1.5', 'v1.5d', 'v2'"),
    ("resnet50_v1_5", {"stem": "none"}, "`stem` should be one of ['imagenet', 'cifar', 'kerv"),
    ("resnet50_v1_5", {"version": "v2", "zero_last_norm": True}, "should be False in v2"),
    ("resnet9", {"halvings": ("pool", "drop", "pool")}, "`halvings` should be one of"),
    ("resnet9", {"residual": (4,)}, "`halvings` should have one item fewer than `widths`"),
]


@pytest.mark.parametrize(("name", "arguments", "words"), REFUSED)
def test_what_cannot_be_built_is_refused_in_one_line(name, arguments, words):
    with pytest.raises(ValueError, match=re.escape(words)) as error:
        models.build(name, **arguments)
    assert "\n" not in str(error.value)


def test_a_network_of_others_has_no_argument_of_ours():
    with pytest.raises(ValueError, match="`function` is not an argument .* num_classes, .* name"):
        models.build("keras.applications:ResNet50", function="networks:small")


def test_a_dtype_may_be_a_type():
    logits = models.build("resnet8_v1_pad", dtype=np.float64).get_layer("logits")
    assert logits.compute_dtype == "float64"


def test_names_match_a_pattern():
    names = models.names("resnet50*")
    assert "resnet50_v1" in names and all(name.startswith("resnet50") for name in names)
    assert models.names("*") == models.names() and models.names("nothing*") == []


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
