"""Parts of networks: the stages that torchvision's and Hugging Face's names state."""

import re

import pytest
import tensorflow as tf

from dawnbench_tf import models
from dawnbench_tf.models import parts


@pytest.mark.parametrize(
    ("name", "stem", "stages"),
    [  # convolutions: one in the stem; 2 or 3 a unit, one more where the width changes
        ("resnet18_v1", 1, [4, 5, 5, 5]),
        ("resnet26d", 3, [7, 7, 7, 7]),
        ("resnet8_v1_proj", 1, [2, 3, 3]),
        ("resnet20_tf", 1, [6, 6, 6]),
    ],
)
def test_stages_have_the_convolutions_that_the_depth_says(name, stem, stages):
    model = models.build(name)
    split = parts.split(model)
    counts = [sum("conv2d" in layer.name for layer in part) for part in split]
    assert counts == [stem, *stages, 0]
    assert sum(len(part) for part in split) == sum(bool(layer.weights) for layer in model.layers)
    assert [type(layer) for layer in split[-1]] == [tf.keras.layers.Dense]


def test_a_bert_s_parts_are_embeddings_blocks_and_head():
    sizes = {"pieces": 40, "cls_id": 2, "sep_id": 3, "hidden": 8, "heads": 2, "layers": 3}
    split = parts.split(models.build("bert_tiny_span", **sizes))
    assert {layer.name for layer in split[0]} == {"embedded_norm", "places", "segments", "words"}
    for number, part in enumerate(split[1:-1]):
        assert {re.match(r"layer_(\d+)_", layer.name)[1] for layer in part} == {str(number)}
    assert [layer.name for layer in split[-1]] == ["first", "last"] and len(split) == 5


def test_a_network_without_parts_is_refused():
    model = models.build("resnet8_v1_pad")
    for other in (models.build("airbench96"), tf.keras.models.clone_model(model)):
        with pytest.raises(ValueError, match="ResNets and BERTs of `build` have parts"):
            parts.freeze(other, 1)
    for count in (5, -1):
        with pytest.raises(ValueError, match="resnet8_v1_pad has 4 parts before its head"):
            parts.freeze(model, count)
