"""Matches published ResNets to our layers: those of torchvision, timm, keras.applications, ...

The file's layers of each kind (convolution, BN, dense) are sorted into network order, which their
names state: stage, block, shortcut or branch, index in the block. They are matched one by one to
our layers of that kind. All shapes are checked before a value is read.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from .files import Tensor

# A layer's tensors, by Keras's names.
_PARTS = ("kernel", "bias", "gamma", "beta", "moving_mean", "moving_variance")
_KINDS = {
    "convolution": tf.keras.layers.Conv2D,
    "BN": tf.keras.layers.BatchNormalization,
    "dense layer": tf.keras.layers.Dense,
}
# Names of keras.applications' ResNet-50 until 2018, and its BNs' epsilon.
_OLD_KERAS, _OLD_EPSILON = r"(?:res|bn)(\d)([a-z])_branch(1|2[abc])", 1e-3
# Names of the 3x3 convolution that has a bottleneck stage's stride in torchvision's and timm's
# networks, and of the 1x1 one that has it in those of keras.applications.
_STRIDED = r"layer[2-9]\.0\.conv2|conv[3-9]_block1_1_conv|res[3-9]a_branch2a"
_LAST = 100  # stage number of layers behind all stages


class Layer(NamedTuple):
    """A layer of a file."""

    name: str  # in the file
    tensors: dict[str, Tensor]  # by a name of _PARTS
    transposed: bool  # whether axes are PyTorch's: (out, in, height, width), (out, in)

    @property
    def kind(self) -> str:
        """A key of _KINDS: "convolution", "BN" or "dense layer"; "" for any other layer."""
        if "moving_mean" in self.tensors:
            return "BN"
        rank = len(self.tensors["kernel"].shape) if "kernel" in self.tensors else 0
        return {4: "convolution", 2: "dense layer"}.get(rank, "")

    def shape(self, part: str) -> tuple[int, ...]:
        """Returns a tensor's shape with Keras's axes."""
        shape = tuple(self.tensors[part].shape)
        axes = _AXES[len(shape)] if self.transposed else range(len(shape))
        return tuple(shape[axis] for axis in axes)

    def read(self, part: str) -> np.ndarray:
        """Reads a tensor's values, with Keras's axes."""
        values = self.tensors[part].read()
        return values.transpose(_AXES[values.ndim]) if self.transposed else values


_AXES = {4: (2, 3, 1, 0), 2: (1, 0), 1: (0,), 0: ()}


def values(
    model: tf.keras.Model, tensors: Mapping[str, Tensor], new_head: bool = False
) -> Iterator[tuple[Any, np.ndarray]]:
    """Yields each variable with its value in the file; checks all shapes before reading a value."""
    sources = _layers(tensors)
    if not any(source.kind for source in sources.values()):
        names = ", ".join(list(tensors)[:5])[:200]
        keras = "/" in names or not names  # paths in an .h5
        hint = "load it into the network that it was saved from, and save that again"
        hint = f"; the first releases of Keras 3 saved no names: {hint}"
        raise ValueError(f"it has no layer with a known name{hint if keras else f': {names}'}")
    unknown = [s.name for s in sources.values() if not s.kind and s.name.startswith("layer")]
    if unknown:
        raise ValueError(f"its {unknown[0]} is no layer of the network")
    pairs: list[tuple[Any, Layer]] = []
    for kind, cls in _KINDS.items():
        own = (layer for layer in _all_layers(model) if isinstance(layer, cls))
        # Keras counts the layers of each class, in their names.
        ours = sorted(own, key=lambda layer: int((re.findall(r"_(\d+)$", layer.name) or [0])[0]))
        theirs = sorted((x for x in sources.values() if x.kind == kind), key=_position)
        if new_head and cls is tf.keras.layers.Dense and _differ(ours, theirs):
            continue
        if len(ours) != len(theirs):
            hint = "; load it before the network is wrapped in another" * (not ours)
            if cls is tf.keras.layers.Dense:
                hint = "; new_head=True loads all but these"
            text = f"it has {len(theirs)} layers of kind {kind}, the network {len(ours)}"
            raise ValueError(f"{text}{hint}")
        pairs += zip(ours, theirs, strict=True)
    # Basic blocks stride in their first 3x3 convolution, and keras.applications' second version in
    # a stage's last block. Of these three names each network of bottlenecks has one.
    bottlenecks = not {"layer2.0.conv3", "conv3_block1_0_conv", "res3a_branch1"}.isdisjoint(sources)
    bottlenecks &= not any("preact" in name for name in sources)
    biases = {}  # convolutions' biases, by name of the BN whose moving mean they reduce
    for layer, source in pairs:
        if "bias" in source.tensors and layer.bias is None:
            pytorch = re.sub(r"conv(?=\d*$)", "bn", source.name)
            norms = (pytorch, f"bn_{source.name}", source.name.replace("res", "bn", 1))
            after = [name for name in norms if name in sources and name != source.name]
            if not after:
                raise ValueError(f"its {source.name} has a bias, the network's layer none")
            biases[after[0]] = source
        _check(layer, source)
        if bottlenecks and re.fullmatch(_STRIDED, source.name) and layer.strides == (1, 1):
            text = f"its {source.name} has a stride, ours none: it is of another kind of ResNet"
            raise ValueError(f"{text}, with the same shapes (docs/models.md)")
    for layer, source in pairs:
        for part, variable in _variables(layer).items():
            value = source.read(part)
            if part == "moving_mean" and source.name in biases:
                value = value - biases[source.name].read("bias")
            if part == "moving_variance" and re.fullmatch(rf"bn_conv1|{_OLD_KERAS}", source.name):
                value = value + (_OLD_EPSILON - layer.epsilon)
            yield variable, value


def _differ(ours: Sequence[tf.keras.layers.Layer], theirs: Sequence[Layer]) -> bool:
    """Whether a file's head has another number of layers, or of classes; or it has none."""
    return len(ours) != len(theirs) or any(
        source.shape("kernel")[:-1] == tuple(layer.kernel.shape)[:-1]
        and source.shape("kernel") != tuple(layer.kernel.shape)
        for layer, source in zip(ours, theirs, strict=True)
    )


def _layers(tensors: Mapping[str, Tensor]) -> dict[str, Layer]:
    """Groups a file's tensors by layer; returns the layers by name."""
    layers: dict[str, dict[str, Tensor]] = {}
    keras = any(name.endswith(("kernel:0", "kernel")) for name in tensors)
    stems = [re.fullmatch(r"((?:(?!layer\d)\w+\.)*)conv1(\.0)?\.weight", name) for name in tensors]
    wrappers = {stem[1]: None for stem in stems if stem} or {"": None}
    if len(wrappers) > 1:
        names = ", ".join(wrapper.rstrip(".") or "one without a name" for wrapper in wrappers)
        raise ValueError(f"it has several networks: {names}; save one of them alone")
    (wrapper,) = wrappers  # what wraps the network: module., _orig_mod., model.
    for name, tensor in tensors.items():
        if not name.startswith(wrapper):
            continue  # beside the network: a criterion's, n_averaged
        if keras:
            prefix, _, leaf = name.partition(":")[0].rpartition("/")
            prefix = prefix.rpartition("/")[2]
        else:
            prefix, _, leaf = name.removeprefix(wrapper).rpartition(".")
        layers.setdefault(prefix, {})[leaf] = tensor
    return {
        name: Layer(name, _parts(leaves), not keras)
        for name, leaves in layers.items()
        if set(leaves) != {"num_batches_tracked"}
    }


def _parts(leaves: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Returns a layer's tensors by Keras's names; PyTorch's weight and bias may also be a BN's."""
    normalizes = "running_mean" in leaves or "moving_mean" in leaves
    weight, bias = ("gamma", "beta") if normalizes else ("kernel", "bias")
    names = {"running_mean": "moving_mean", "running_var": "moving_variance"}
    names |= {"weight": weight, "bias": bias, **{part: part for part in _PARTS if part != "bias"}}
    return {names[leaf]: tensor for leaf, tensor in leaves.items() if leaf in names}


def _position(layer: Layer) -> tuple[int, int, bool, list[int]]:
    """Returns a layer's sort key in network order: stage, block, shortcut first, index in block."""
    name = layer.name
    if match := re.fullmatch(r"layer(\d+)\.(\d+)\.(.+)", name):
        stage, block, rest = match.groups()
        shortcut = rest.startswith(("downsample", "shortcut"))
        return int(stage), int(block), not shortcut, _numbers(rest)
    if match := re.fullmatch(r"conv(\d+)_block(\d+)_(\d|preact)_(conv|bn)", name):
        stage, block, index, _ = match.groups()
        return int(stage), int(block), index != "preact", [int(index) if index.isdigit() else 0]
    if match := re.fullmatch(_OLD_KERAS, name):
        stage, block, branch = match.groups()
        return int(stage), ord(block) - ord("a"), branch != "1", [ord(branch[-1])]
    if re.fullmatch(r"conv1(\.\d+|_conv|_bn)?", name):
        return 0, 0, False, _numbers(name)
    if name == "bn_conv1":
        return 0, 0, False, [1]
    if name == "bn1":  # timm's: the last BN of a stem of several convolutions
        return 0, 1, False, []
    if name in ("post_bn", "fc", "fc1000", "linear", "predictions", "probs"):
        return _LAST, 0, False, []
    text = "files that save_weights of this package's models wrote are loaded by model.load_weights"
    raise ValueError(f"its {name[:60]} is not a known layer name of ResNets; {text}")


def _numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]


def _all_layers(model: tf.keras.Model) -> Iterator[tf.keras.layers.Layer]:
    """Yields all layers, including those of stochastic-depth branches."""
    for layer in model.layers:
        yield layer
        if hasattr(layer, "branch"):
            yield from _all_layers(layer.branch)


def _variables(layer: tf.keras.layers.Layer) -> dict[str, tf.Variable]:
    """Returns a layer's variables by name; leaves out those that it does not have."""
    variables = {part: getattr(layer, part, None) for part in _PARTS}
    return {part: variable for part, variable in variables.items() if variable is not None}


def _check(layer: tf.keras.layers.Layer, source: Layer) -> None:
    """Refuses a layer of the file whose tensors are missing, extra or of another shape."""
    variables = _variables(layer)
    for part, variable in variables.items():
        if part not in source.tensors:
            raise ValueError(f"its {source.name} lacks the {part}")
        if source.shape(part) != tuple(variable.shape):
            theirs, ours = source.shape(part), tuple(variable.shape)
            text = f"the {part} of its {source.name} has shape {theirs}, ours {ours}"
            if source.kind == "dense layer" and theirs[-1] != ours[-1]:
                text += "; new_head=True loads all but the head, or build with "
                text += f"num_classes={theirs[-1]}"
            raise ValueError(text)
    if "gamma" in source.tensors and "gamma" not in variables and source.kind == "BN":
        raise ValueError(f"its {source.name} has a gamma, the network's BN none")
