"""Parts of a network in order: stem and stages of a ResNet, embeddings and blocks of a BERT, head.

Fine-tuning freezes the first parts, or gives each part its own learning rate. Muon trains the
kernels before the head.
"""

import re
from collections.abc import Iterable

import tensorflow as tf

_EMBEDDINGS = ("words", "segments", "places", "embedded_norm")  # layers of a BERT


def split(model: tf.keras.Model) -> list[list[tf.keras.layers.Layer]]:
    """Returns the layers with weights of each part, first to last; the head is the last part."""
    layers = [layer for layer in model.layers if layer.weights]
    if any(layer.name == "words" for layer in layers):
        return _split_bert(layers)
    if any(hasattr(layer, "branch") for layer in layers):
        raise ValueError(f"{model.name} skips units in training (stochastic depth)")
    names = {layer.name for layer in model.layers}
    stages = sum(f"stage{number}" in names for number in range(1, 10))
    if not stages or not any(hasattr(layer, "ends_stem") for layer in model.layers):
        text = "has no stem and stages, or was loaded or cloned; ResNets and BERTs of `build` have"
        raise ValueError(f"{model.name} {text} parts")
    parts: list[list[tf.keras.layers.Layer]] = [[] for _ in range(stages + 2)]
    number, ends = 0, {f"stage{number}" for number in range(1, stages)}
    # `model.layers` has each layer after those that it depends on.
    for layer in model.layers:
        if layer.name == "features":
            number = stages + 1
        if layer.weights:
            parts[number].append(layer)
        # A BN behind the last stage (pre-activation) is part of that stage.
        if getattr(layer, "ends_stem", False) or layer.name in ends:
            number += 1
    return parts


def _split_bert(layers: Iterable[tf.keras.layers.Layer]) -> list[list[tf.keras.layers.Layer]]:
    parts: dict[int, list[tf.keras.layers.Layer]] = {}
    for layer in layers:
        block = re.match(r"layer_(\d+)_", layer.name)
        number = 1 + int(block[1]) if block else 0 if layer.name in _EMBEDDINGS else 10**6
        parts.setdefault(number, []).append(layer)
    if len(parts) < 3:
        raise ValueError("this reader has no blocks; ResNets and BERTs have parts")
    return [parts[number] for number in sorted(parts)]


def freeze(model: tf.keras.Model, count: int) -> None:
    """Freezes the first `count` parts: their weights are not trained, their BNs infer."""
    parts = split(model)
    if not 0 <= count < len(parts):
        raise ValueError(f"{model.name} has {len(parts) - 1} parts before its head")
    for part in parts[:count]:
        for layer in part:
            layer.trainable = False


def hidden_kernels(model: tf.keras.Model) -> list[tf.Variable]:
    """Returns the trained kernels of convolutions and dense layers before the head, in order."""
    names = [layer.name for layer in model.layers]
    if "features" not in names:
        raise ValueError(f"{model.name} has no layer 'features' in front of its head")
    # `model.layers` has each layer after those that it depends on.
    body = model.layers[: names.index("features")]
    weights = [weight for layer in body for weight in layer.trainable_weights]
    return [w for w in weights if len(w.shape) > 1 and w.name.split("/")[-1].startswith("kernel")]
