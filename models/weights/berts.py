"""Matches the tensors of published BERTs to our layers, by name.

google-research/bert's checkpoints and Hugging Face's state dicts, safetensors and .h5 files contain
the same arrays under different names. The span head of a fine-tuned BERT is loaded if it exists.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from .files import Tensor

_EMBEDDED = {  # our layer's name: theirs
    "words": "embeddings/word_embeddings",
    "places": "embeddings/position_embeddings",
    "segments": "embeddings/token_type_embeddings",
    "embedded_norm": "embeddings/LayerNorm",
}
_BLOCK = {  # layers of a block, our name: theirs
    "query": "attention/self/query",
    "key": "attention/self/key",
    "value": "attention/self/value",
    "attended": "attention/output/dense",
    "attended_norm": "attention/output/LayerNorm",
    "wide": "intermediate/dense",
    "narrow": "output/dense",
    "narrow_norm": "output/LayerNorm",
}
_SUFFIXES = {  # our tensor: what may follow the layer's name in a file
    "table": ("", "/weight", "/embeddings"),
    "kernel": ("/kernel", "/weight", "/output_weights"),
    "gamma": ("/gamma", "/weight"),
    "beta": ("/beta", "/bias"),
    "bias": ("/bias", "/output_bias"),
}
_HEAD = "qa_outputs"
# Names of an encoder's tensors, but for ids of positions and Adam's means.
_INSIDE = r"(embeddings|encoder)/(?!.*(_ids|/adam_[mv])$)"


def values(
    model: tf.keras.Model, tensors: Mapping[str, Tensor], new_head: bool = False
) -> Iterator[tuple[Any, np.ndarray]]:
    """Yields each variable with its value in the file; checks all shapes before reading a value."""
    theirs = {_canonical(name): tensor for name, tensor in tensors.items()}
    blocks = {name.split("/")[1] for name in theirs if name.startswith("encoder/layer_")}
    pairs: list[tuple[tf.Variable, Callable[..., np.ndarray]]] = [
        (variable, _tensor(theirs, layer, part, tuple(variable.shape)))
        for layer, part, variable in _encoder(model)
    ]
    ours = sum(layer.name.endswith("_query") for layer in model.layers)
    if len(blocks) != ours:
        raise ValueError(f"it has {len(blocks)} layers, the network {ours}")
    if unknown := [name for name in theirs if re.match(_INSIDE, name)]:
        raise ValueError(f"its {unknown[0][:100]} is no layer of the network")
    layers = {layer.name: layer for layer in model.layers}
    ends = {unit: layers[end] for unit, end in enumerate(("first", "last")) if end in layers}
    wide = [tensor for name, tensor in theirs.items() if name.startswith(f"{_HEAD}/")]
    fits = ends and all(2 in tensor.shape for tensor in wide)
    if wide and not ends and not new_head:
        raise ValueError(f"its {_HEAD} is no layer of the network; new_head=True leaves it out")
    if wide and (fits or not new_head):
        width = next(iter(ends.values())).kernel.shape[0]
        kernel = _tensor(theirs, _HEAD, "kernel", (width, 2))
        bias = _tensor(theirs, _HEAD, "bias", (2,))
        # Their head is one layer of two units, start and end; ours is two layers of one unit.
        for unit, end in ends.items():
            pairs.append((end.kernel, lambda i=unit: kernel()[:, i : i + 1]))
            pairs.append((end.bias, lambda i=unit: bias()[i : i + 1]))
    for variable, read in pairs:
        yield variable, read()


def _canonical(name: str) -> str:
    """Returns a tensor's name as in google-research/bert, from `embeddings` or `encoder` on."""
    name = re.sub(r"layer(?:\.|_\._|_)(\d+)", r"layer_\1", name.removesuffix(":0"))
    parts = name.replace(".", "/").replace("cls/squad", _HEAD).split("/")
    starts = [i for i, part in enumerate(parts[:-1]) if part in ("embeddings", "encoder", _HEAD)]
    return "/".join(parts[starts[-1] if starts else 0 :])


def _encoder(model: tf.keras.Model) -> Iterator[tuple[str, str, tf.Variable]]:
    """Yields (their layer's name, part, our variable) for all variables below the head."""
    for layer in model.layers:
        block = re.fullmatch(r"layer_(\d+)_(\w+)", layer.name)
        theirs = _EMBEDDED.get(layer.name, "")
        if block and block[2] in _BLOCK:
            theirs = f"encoder/layer_{block[1]}/{_BLOCK[block[2]]}"
        for part in _SUFFIXES if theirs else ():
            if (variable := getattr(layer, part, None)) is not None:
                yield theirs, part, variable


def _tensor(
    theirs: dict[str, Tensor], layer: str, part: str, shape: tuple[int, ...]
) -> Callable[[], np.ndarray]:
    """Takes a layer's tensor out; returns a function that reads it with Keras's axes."""
    suffixes = [suffix for suffix in _SUFFIXES[part] if layer + suffix in theirs]
    if not suffixes:
        raise ValueError(f"it has no {layer}, or that lacks the {part}")
    tensor = theirs.pop(layer + suffixes[0])
    transposed = part == "kernel" and suffixes[0] != "/kernel"  # PyTorch's (out, in)
    their_shape = tuple(tensor.shape)[:: -1 if transposed else 1]
    if their_shape != shape:
        raise ValueError(f"the {part} of its {layer} has shape {their_shape}, ours {shape}")
    return (lambda: tensor.read().T) if transposed else tensor.read
