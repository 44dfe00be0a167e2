"""BERT's published weights in our reader: names of tensors, as each library writes them.

google-research/bert's checkpoints, Hugging Face's state dicts and safetensors, and its .h5 files
hold the same arrays; where a file has the span's head of a fine-tuned BERT, that is taken too.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from .files import Tensor

_EMBEDDED = {  # our layer, and their name of it
    "words": "embeddings/word_embeddings",
    "places": "embeddings/position_embeddings",
    "segments": "embeddings/token_type_embeddings",
    "embedded_norm": "embeddings/LayerNorm",
}
_OF_A_BLOCK = {
    "query": "attention/self/query",
    "key": "attention/self/key",
    "value": "attention/self/value",
    "attended": "attention/output/dense",
    "attended_norm": "attention/output/LayerNorm",
    "wide": "intermediate/dense",
    "narrow": "output/dense",
    "narrow_norm": "output/LayerNorm",
}
_SPELLINGS = {  # what a tensor of ours may be called there, at the end of its layer's name
    "table": ("", "/weight", "/embeddings"),
    "kernel": ("/kernel", "/weight", "/output_weights"),
    "gamma": ("/gamma", "/weight"),
    "beta": ("/beta", "/bias"),
    "bias": ("/bias", "/output_bias"),
}
_HEAD = "qa_outputs"


def values(
    model: tf.keras.Model, tensors: Mapping[str, Tensor]
) -> Iterator[tuple[Any, np.ndarray]]:
    """Our variables, each with its value in a file; all are checked before the first is read.

    Args:
      model: a BERT of the catalogue.
      tensors: of the file, by name.

    Raises:
      ValueError: they are of another network.
    """
    theirs = {_plain(name): tensor for name, tensor in tensors.items()}
    pairs = [
        (variable, _tensor(theirs, layer, part, tuple(variable.shape)))
        for layer, part, variable in _encoder(model)
    ]
    blocks = {name.split("/")[1] for name in theirs if name.startswith("encoder/layer_")}
    ours = sum(layer.name.endswith("_query") for layer in model.layers)
    if len(blocks) != ours:
        raise ValueError(f"it has {len(blocks)} layers, the network {ours}")
    ends = [model.get_layer(name) for name in ("first", "last")]
    if any(name.startswith(_HEAD) for name in theirs):
        width = ends[0].kernel.shape[0]
        kernel = _tensor(theirs, _HEAD, "kernel", (width, 2))
        bias = _tensor(theirs, _HEAD, "bias", (2,))
        for place, end in enumerate(ends):
            pairs.append((end.kernel, lambda i=place: kernel()[:, i : i + 1]))
            pairs.append((end.bias, lambda i=place: bias()[i : i + 1]))
    for variable, read in pairs:
        yield variable, read()


def _plain(name):
    """A tensor's name as google-research/bert has it, from `embeddings` or `encoder` on."""
    name = re.sub(r"layer(?:\.|_\._|_)(\d+)", r"layer_\1", name.removesuffix(":0"))
    parts = name.replace(".", "/").replace("cls/squad", _HEAD).split("/")
    starts = [i for i, part in enumerate(parts[:-1]) if part in ("embeddings", "encoder", _HEAD)]
    return "/".join(parts[starts[-1] if starts else 0 :])


def _encoder(model):
    """Yields their name of a layer, what part of it, and our variable: all below the head."""
    for layer in model.layers:
        block = re.fullmatch(r"layer_(\d+)_(\w+)", layer.name)
        theirs = _EMBEDDED.get(layer.name)
        if block and block[2] in _OF_A_BLOCK:
            theirs = f"encoder/layer_{block[1]}/{_OF_A_BLOCK[block[2]]}"
        for part in _SPELLINGS if theirs else ():
            if (variable := getattr(layer, part, None)) is not None:
                yield theirs, part, variable


def _tensor(theirs, layer, part, shape):
    """What reads a layer's tensor, with Keras's axes; refuses one of another shape."""
    spellings = [spelling for spelling in _SPELLINGS[part] if layer + spelling in theirs]
    if not spellings:
        raise ValueError(f"it has no {layer}, or that lacks the {part}")
    tensor = theirs[layer + spellings[0]]
    turned = part == "kernel" and spellings[0] != "/kernel"  # PyTorch's (out, in)
    of_theirs = tuple(tensor.shape)[:: -1 if turned else 1]
    if of_theirs != shape:
        raise ValueError(f"the {part} of its {layer} is of shape {of_theirs}, ours {shape}")
    return (lambda: tensor.read().T) if turned else tensor.read
