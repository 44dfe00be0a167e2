"""From a family's body to a Keras model: input, layer factories, head and Model, made once."""

import sys
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from inspect import signature
from typing import Any, NamedTuple

import tensorflow as tf

from . import factories, texts
from .catalog.variant import Variant
from .factories import Layers

Arguments = Mapping[str, Any]


def classifier(x: tf.Tensor, num_classes: int, make: Layers, args: Arguments) -> tf.Tensor:
    """The head of most families: global average, called `features`, and dense layer `logits`.

    Args:
      x: the last feature map, (batch, height, width, channels) or as the layout has it.
      num_classes: length of the logits.
      make: layer factories.
      args: of the family's body; heads that depend on them read them.

    Returns:
      float32 logits (batch, num_classes).
    """
    x = make.global_average(name="features")(x)
    return make.to_float32(1.0, name="logits")(make.dense(num_classes)(x))


class Family(NamedTuple):
    """What a family of networks says of itself: the constant FAMILY of its module.

    `args` are the arguments of a catalogue row, with what a caller replaced.
    """

    body: Callable[..., tf.Tensor]  # (input, layers or dtype, **args): last feature map, or logits
    smallest: Callable[
        [Arguments], Arguments
    ]  # args that make a row of this kind as small as may be
    describe: Callable[[Arguments], tuple[str, str, str]]  # block, shortcut, activation, in words
    head: Callable[[tf.Tensor, int, Layers, Arguments], tf.Tensor] = classifier
    smallest_side: Callable[[Arguments], int] = lambda args: 4  # pixels
    reads: tuple[str, ...] = ()  # of readers: names of their inputs, out of `texts.INPUTS`


def family_of(variant: Variant) -> Family:
    """The family that builds a variant."""
    return import_module(f"{__package__}.{variant.family}").FAMILY


def arguments(variant: Variant) -> list[str]:
    """Returns the names of the arguments that `build` takes for a variant."""
    head = _of_questions if variant.inputs == "questions" else _of_images
    functions = (head, family_of(variant).body)
    parameters = [
        item for function in functions for item in signature(function).parameters.values()
    ]
    return [item.name for item in parameters if item.kind is item.KEYWORD_ONLY]


def build(
    variant: Variant, args: Arguments, classes: factories.LayerClasses = factories.KERAS
) -> tf.keras.Model:
    """Builds a variant.

    Args:
      variant: a row of the catalogue.
      args: arguments of `models.build`, the variant's own among them.
      classes: for the training harness: the layers of a network for images that Keras has itself.
        Files of models of `factories.TRAINING` load only where `models.layers` is imported.

    Raises:
      ValueError: an argument is out of range.
    """
    family = family_of(variant)
    if variant.inputs == "questions":
        return _of_questions(family, name=variant.name, **args)
    return _of_images(family, variant, classes, **args)


def _of_images(
    family,
    variant,
    classes,
    *,
    num_classes=None,
    input_shape=None,
    data_format="NHWC",
    dtype=None,
    synchronized=False,
    name=None,
    **args,
):
    layers = partial(
        factories.layers,
        data_format=data_format,
        dtype=dtype,
        synchronized=synchronized,
        classes=classes,
    )
    make = layers()
    num_classes = variant.num_classes if num_classes is None else num_classes
    if num_classes < 1:
        raise ValueError(
            "`num_classes` should be at least 1; for features without a head take "
            f'model.get_layer("features").output. Received: num_classes={num_classes}'
        )
    images = _images(input_shape, data_format, variant.image_size, family.smallest_side(args))
    x = family.body(images, layers, **args)
    logits = family.head(x, num_classes, make, args)
    return _model(images, logits, name or variant.name)


def _of_questions(family, *, dtype=None, name=None, **args):
    inputs = []
    for read in family.reads:
        axes, of = texts.INPUTS[read]
        inputs.append(tf.keras.Input((None, *axes), dtype=of, name=read))
    return _model(inputs, family.body(inputs, dtype, **args), name)


def _images(input_shape, data_format, native, smallest):
    """The network's input, `native` x `native` x 3 if no shape is given.

    Raises ValueError if a side is under `smallest` pixels, or the shape isn't one of the layout.
    """
    channels_last = data_format == "NHWC"
    native_shape = (native, native, 3) if channels_last else (3, native, native)
    shape = tuple(native_shape if input_shape is None else input_shape)
    sides = shape[:2] if channels_last else shape[1:]
    if len(shape) != 3 or any(side is not None and side < smallest for side in sides):
        order = "(height, width, channels)" if channels_last else "(channels, height, width)"
        raise ValueError(
            f"`input_shape` should be {order} in {data_format}, sides of {smallest} pixels at "
            f"least. Received: input_shape={shape}"
        )
    return tf.keras.Input(shape, name="images")


def _model(inputs, outputs, name):
    """The Keras model, however deep: tf-keras walks back from the outputs by recursion."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, 20_000))  # ResNet-1202 takes 5,000
    try:
        return tf.keras.Model(inputs, outputs, name=name)
    finally:
        sys.setrecursionlimit(limit)
