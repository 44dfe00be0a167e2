"""Verified models by name: `build("resnet56_tf", data_format="NCHW")`, `names()`.

Importing this package imports no TensorFlow; building a model does. Whichever Keras the importing
project uses (`tf.keras` as Keras 3 or as tf-keras 2) is the one the model is made of, and none of
its global settings is touched.

Here: `catalog` and `published`, rows; a module for each family of networks, its body; what bodies
are made of (`blocks`, `factories`, `layers`, `dropouts`, `attention`, ...); `networks`, which adds
input and head; `serialization`, which loads `.keras` files; `published_weights` and
`published_berts`, from files that `weight_files` reads, with `pickles` where these are some.

May import: nothing of dawnbench_tf.
"""

from difflib import get_close_matches
from fnmatch import fnmatchcase
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .catalog import VARIANTS, Variant

if TYPE_CHECKING:
    import os

    import tensorflow as tf


_LAYOUTS = {"channels_last": "NHWC", "channels_first": "NCHW"}  # in Keras's words
_ELSEWHERE = {  # arguments of keras.applications: what does that here
    "weights": "load_published(model, file) gives a model weights of a file",
    "include_top": 'model.get_layer("features").output is what the head reads',
    "classes": "num_classes is the length of the logits",
}


def names(pattern: str = "*") -> list[str]:
    """The names of variants, in catalogue order: all, or those like `pattern`, as "resnet50*"."""
    return [name for name in VARIANTS if fnmatchcase(name, pattern)]


def get(name: str) -> Variant:
    """The catalogue row of a variant. Raises ValueError, with names that are like it."""
    if name not in VARIANTS:
        text = str(name)[:100]
        near = [variant for variant in VARIANTS if variant.startswith(f"{text}_")]
        near = near or get_close_matches(text, VARIANTS, n=1)
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "names() lists them."
        raise ValueError(
            f"`name` should be a model of the catalogue; {hint} Received: name={text!r}"
        )
    return VARIANTS[name]


def build(name: str, /, **overrides: Any) -> "tf.keras.Model":
    """Builds a variant as a `tf.keras.Model` that returns float32 logits.

    Networks for images take these arguments, and those of their family's `body`:

    Args:
      name: a name out of `names()`.
      num_classes: length of the logits; default: the variant's data set's, 10 or 1000.
      input_shape: (height, width, channels), or (channels, height, width) with NCHW; sides may be
        None. Default: the variant's own, 32x32x3 or 224x224x3.
      data_format: "NHWC" (default) or "NCHW"; Keras's "channels_last" and "channels_first" too.
      dtype: precision of the layers as Keras has it, e.g. "mixed_bfloat16"; default: Keras's global
        policy.
      synchronized: BN statistics over the global batch, not over each replica's own (default).
      **overrides: any of these, and arguments of the family's `body` that replace the variant's.

    Readers take `dtype` and the arguments of their `body`.

    Returns:
      Of images: (batch, *input_shape) to logits (batch, num_classes). Of questions: what
      `texts.INPUTS` says of the inputs, named as there, to logits of the answer's first and last
      token (batch, 2, context), -1e30 in padding.

    Raises:
      ValueError: there is no such model, or an argument is out of range.
    """
    for argument in overrides.keys() & _ELSEWHERE.keys():
        raise ValueError(f"`{argument}` is no argument of build: {_ELSEWHERE[argument]}.")
    if (layout := overrides.get("data_format")) in _LAYOUTS:
        overrides["data_format"] = _LAYOUTS[layout]
    networks = import_module(f"{__name__}.networks")
    variant = get(name)
    return networks.build(variant, {**variant.args, **overrides})


def load_model(file: "str | os.PathLike") -> "tf.keras.Model":
    """Loads a `.keras` file that `model.save` wrote of a model of `build`, in any process.

    A file may name Keras's layers, ours and those that the program registered; one that names
    anything else, or a layer that runs code or opens files, is refused before Keras sees it.
    Keras's own `tf.keras.models.load_model` loads any file of `build` once
    `dawnbench_tf.models.serialization` is imported, which registers our layers. The Keras must be
    the one that wrote the file.

    Args:
      file: path of the file.

    Raises:
      ValueError: the file does not exist, is no `.keras` file, is damaged, or names classes or
        functions that are not allowed.
    """
    return import_module(f"{__name__}.serialization").load_model(file)


def load_published(model: "tf.keras.Model", file: "str | os.PathLike") -> None:
    """Gives a ResNet or a BERT of the catalogue the weights that somebody published for it.

    Files: PyTorch's state dicts (.pth, .th, .bin), alone or in a training script's checkpoint;
    .safetensors; Keras's .h5; a TensorFlow checkpoint, or its .index. Names of layers: those of
    torchvision, timm and keras.applications, and of CIFAR ResNets in torchvision's manner; of BERTs
    Hugging Face's and google-research/bert's, with the head of one that was trained on SQuAD. A
    bias in front of a BN, where our network has none, is taken off the BN's mean. Nothing that a
    file may hold is run. How images are standardized belongs to the weights: look it up where they
    come from.

    Args:
      model: of `build`, in any precision and layout.
      file: path of the file.

    Raises:
      ValueError: the file is damaged, of another kind or of another network; the model is as it
        was.
      OSError: the file can't be read.
    """
    import_module(f"{__name__}.published_weights").load(model, file)
