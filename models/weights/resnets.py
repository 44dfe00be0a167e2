"""Weights that others published, in our networks: torchvision's, timm's, keras.applications', ...

Layers are matched by kind and by their order in the network, which names of ResNets tell: stage,
block, shortcut, place in the block. Every shape is checked before the first value is read.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from . import berts, files
from .files import Tensor

_LEAVES = {  # the last part of a tensor's name, in PyTorch and in Keras: what it is to the layer
    "kernel": "kernel",
    "gamma": "gamma",
    "beta": "beta",
    "moving_mean": "mean",
    "moving_variance": "variance",
    "running_mean": "mean",
    "running_var": "variance",
}
_KINDS = {
    "convolution": tf.keras.layers.Conv2D,
    "BN": tf.keras.layers.BatchNormalization,
    "dense layer": tf.keras.layers.Dense,
}
_OURS = {"mean": "moving_mean", "variance": "moving_variance"}
_LAST = 100  # a stage after all others


class Layer(NamedTuple):
    """A layer of a file: its name there, and its tensors as our layers call them."""

    name: str
    tensors: dict[str, Tensor]
    transposed: bool  # PyTorch's axes: (out, in, height, width), (out, in)

    @property
    def kind(self) -> str:
        """Convolution, BN or dense layer; else nothing."""
        if "mean" in self.tensors:
            return "BN"
        rank = len(self.tensors["kernel"].shape) if "kernel" in self.tensors else 0
        return {4: "convolution", 2: "dense layer"}.get(rank, "")

    def shape(self, part: str) -> tuple[int, ...]:
        """A tensor's shape with Keras's axes."""
        shape = tuple(self.tensors[part].shape)
        axes = _AXES[len(shape)] if self.transposed else range(len(shape))
        return tuple(shape[axis] for axis in axes)

    def read(self, part: str) -> np.ndarray:
        """A tensor's values with Keras's axes."""
        values = self.tensors[part].read()
        return values.transpose(_AXES[values.ndim]) if self.transposed else values


_AXES = {4: (2, 3, 1, 0), 2: (1, 0), 1: (0,), 0: ()}


def load(model: tf.keras.Model, file: str | Path) -> None:
    """What `models.load_published` does."""
    of_bert = any(layer.name == "layer_0_query" for layer in model.layers)
    values_of = berts.values if of_bert else _values
    index = Path(f"{str(file).removesuffix('.index')}.index")  # of a TensorFlow checkpoint
    with open(index if index.is_file() else file, "rb") as stream:
        try:
            with files.tensors_of(stream) as tensors:
                values = list(values_of(model, tensors))
        except Exception as error:  # whatever garbage brings about
            why = " ".join(str(error).split())[:300]
            raise ValueError(
                f"`file` should hold published weights of {model.name}: {why}. "
                f"Received: file={file}"
            ) from None
    for variable, value in values:
        variable.assign(value)


def _values(model, tensors) -> Iterator[tuple[Any, np.ndarray]]:
    """Our variables, each with its value; all are checked before the first is read."""
    sources = _layers(tensors)
    if not any(source.kind for source in sources.values()):
        raise ValueError(
            "it holds no layer by a name that is known here; the first releases of Keras 3 saved "
            "none: load it into the network that it was saved from, and save that anew"
        )
    pairs: list[tuple[Any, Layer]] = []
    for kind, of_keras in _KINDS.items():
        ours = sorted((x for x in _all_layers(model) if isinstance(x, of_keras)), key=_made)
        theirs = sorted((x for x in sources.values() if x.kind == kind), key=_place)
        if len(ours) != len(theirs):
            raise ValueError(f"it has {len(theirs)} layers of kind {kind}, the network {len(ours)}")
        pairs += zip(ours, theirs, strict=True)
    biases = {}  # by the name of the BN that takes them off its mean
    for layer, source in pairs:
        if "bias" in source.tensors and layer.bias is None:
            biases[_bn_after(source, sources)] = source
        _check(layer, source)
    for layer, source in pairs:
        for part, variable in _variables(layer).items():
            value = source.read(part)
            if part == "mean" and source.name in biases:
                value = value - biases[source.name].read("bias")
            yield variable, value


def _layers(tensors) -> dict[str, Layer]:
    """The layers of a file by name."""
    layers: dict[str, dict[str, Tensor]] = {}
    keras = any(name.endswith(("kernel:0", "kernel")) for name in tensors)
    for name, tensor in tensors.items():
        if keras:
            prefix, _, leaf = name.partition(":")[0].rpartition("/")
            prefix = prefix.rpartition("/")[2]
        else:
            prefix, _, leaf = name.removeprefix("module.").rpartition(".")
        layers.setdefault(prefix, {})[leaf] = tensor
    return {
        name: Layer(name, _parts(leaves), not keras)
        for name, leaves in layers.items()
        if set(leaves) != {"num_batches_tracked"}
    }


def _parts(leaves):
    """A layer's tensors as our layers call them: PyTorch's weight and bias are BN's as well."""
    normalizes = "running_mean" in leaves or "moving_mean" in leaves
    words = {
        "weight": "gamma" if normalizes else "kernel",
        "bias": "beta" if normalizes else "bias",
    }
    return {(words | _LEAVES)[leaf]: x for leaf, x in leaves.items() if leaf in words | _LEAVES}


def _place(layer):
    """Where in the network a layer of its kind is: stage, block, shortcut first, place in it."""
    name = layer.name
    if match := re.fullmatch(r"layer(\d+)\.(\d+)\.(.+)", name):
        stage, block, rest = match.groups()
        shortcut = rest.startswith(("downsample", "shortcut"))
        return int(stage), int(block), not shortcut, _numbers(rest)
    if match := re.fullmatch(r"conv(\d+)_block(\d+)_(\d|preact)_(conv|bn)", name):
        stage, block, place, _ = match.groups()
        return int(stage), int(block), place != "preact", [int(place) if place.isdigit() else 0]
    if re.fullmatch(r"conv1(\.\d+|_conv|_bn)?", name):
        return 0, 0, False, _numbers(name)
    if name == "bn1":  # behind all of a stem of several convolutions
        return 0, 1, False, []
    if name in ("post_bn", "fc", "linear", "predictions", "probs"):
        return _LAST, 0, False, []
    raise ValueError(
        f"its {name[:60]} is no layer of a ResNet that is known here; model.load_weights reads "
        "what save_weights wrote of a model of this package"
    )


def _numbers(text):
    return [int(number) for number in re.findall(r"\d+", text)]


def _bn_after(source, sources):
    """The name of the BN that follows a convolution."""
    name = re.sub(r"conv(?=\d*$)", "bn", source.name)
    if name not in sources or name == source.name:
        raise ValueError(f"its {source.name} has a bias, the network's layer none")
    return name


def _all_layers(model):
    for layer in model.layers:
        yield layer
        if hasattr(layer, "branch"):
            yield from _all_layers(layer.branch)


def _made(layer):
    """When a layer was made, among those of its kind: Keras counts them in their names."""
    return int((re.findall(r"_(\d+)$", layer.name) or [0])[0])


def _variables(layer):
    """A layer's variables by part."""
    normalizes = isinstance(layer, tf.keras.layers.BatchNormalization)
    parts = ["gamma", "beta", "mean", "variance"] if normalizes else ["kernel", "bias"]
    variables = {part: getattr(layer, _OURS.get(part, part)) for part in parts}
    return {part: variable for part, variable in variables.items() if variable is not None}


def _check(layer, source):
    """Refuses a layer of the file that is not of our layer's shapes."""
    variables = _variables(layer)
    for part, variable in variables.items():
        if part not in source.tensors:
            raise ValueError(f"its {source.name} lacks the {part}")
        if source.shape(part) != tuple(variable.shape):
            theirs, ours = source.shape(part), tuple(variable.shape)
            text = f"the {part} of its {source.name} is of shape {theirs}, ours {ours}"
            if source.kind == "dense layer" and theirs[-1] != ours[-1]:
                text += f"; build with num_classes={theirs[-1]}, load, then put a head of your own "
                text += 'on model.get_layer("features").output'
            raise ValueError(text)
    if "gamma" in source.tensors and "gamma" not in variables and source.kind == "BN":
        raise ValueError(f"its {source.name} has a gamma, the network's BN none")
