"""Builds Keras models from catalogue rows: input, the family's body, head."""

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from inspect import signature
from typing import Any, NamedTuple

import tensorflow as tf

from . import factories, texts
from .catalog import Variant
from .factories import Layers

Arguments = Mapping[str, Any]


def classifier(x: tf.Tensor, num_classes: int, make: Layers, args: Arguments) -> tf.Tensor:
    """Builds the head of most families: global average pool `features`, then dense `logits`."""
    x = make.global_average(name="features")(x)
    return make.to_float32(1.0, name="logits")(make.dense(num_classes)(x))


class Family(NamedTuple):
    """A family of networks: the constant FAMILY of its module.

    The body of image classifiers takes images, (batch, height, width, channels) or with NCHW
    (batch, channels, height, width), and a function that returns layer factories. The body of
    readers is described in `texts`. Both raise ValueError for an argument out of range.
    `Arguments` below are the body's arguments: a catalogue row's, with the caller's overrides.
    """

    body: Callable[..., tf.Tensor]  # (input, layers or dtype, **args) -> last map, or logits
    head: Callable[[tf.Tensor, int, Layers, Arguments], tf.Tensor] = classifier
    smallest_side: Callable[[Arguments], int] = lambda args: 4  # minimum image side, pixels
    reads: tuple[str, ...] = ()  # readers: names of their inputs in `texts.INPUTS`


def family_of(variant: Variant) -> Family:
    """Returns the family that builds a variant."""
    return import_module(f"{__package__}.{variant.family}").FAMILY


def arguments(variant: Variant) -> list[str]:
    """Returns the names of the arguments that `build` takes for a variant."""
    builder = _build_reader if variant.inputs == "questions" else _build_classifier
    functions = (builder, family_of(variant).body)
    parameters = [item for each in functions for item in signature(each).parameters.values()]
    return [item.name for item in parameters if item.kind is item.KEYWORD_ONLY]


@tf.autograph.experimental.do_not_convert  # converting each layer's `call` takes 0.4 s
def build(
    variant: Variant, args: Arguments, classes: factories.LayerClasses = factories.KERAS
) -> tf.keras.Model:
    """Builds a variant from the arguments of `models.build`, including the row's own.

    Saved models of `factories.TRAINING` load only after `models.layers` is imported.
    """
    family = family_of(variant)
    if args.get("dtype") is not None:
        args = {**args, "dtype": _floating(args["dtype"])}
    if variant.inputs == "questions":
        return _build_reader(family, **{"name": variant.name, **args})
    return _build_classifier(family, variant, classes, **args)


def _floating(dtype: Any) -> Any:
    """Returns a dtype's name, or a policy, that computes in floats. Raises ValueError."""
    policy = tf.keras.mixed_precision.Policy
    with suppress(TypeError, ValueError):
        name = dtype if isinstance(dtype, str | policy) else tf.as_dtype(dtype).name
        computed = (name if isinstance(name, policy) else policy(name)).compute_dtype
        if tf.as_dtype(computed).is_floating:
            return name
    text = "`dtype` should be a floating-point dtype or policy of Keras, as 'mixed_bfloat16'"
    raise ValueError(f"{text}. Received: dtype={dtype!r}")


def _build_classifier(
    family: Family,
    variant: Variant,
    classes: factories.LayerClasses,
    *,
    num_classes: int | None = None,
    input_shape: Sequence[int | None] | None = None,
    data_format: str = "NHWC",
    dtype: str | None = None,
    synchronized: bool = False,
    name: str | None = None,
    **args: Any,
) -> tf.keras.Model:
    layers = partial(
        factories.layers,
        data_format=data_format,
        dtype=dtype,
        synchronized=synchronized,
        classes=classes,
    )
    make = layers()
    num_classes = variant.num_classes if num_classes is None else num_classes
    if not hasattr(num_classes, "__index__") or num_classes < 1:
        raise ValueError(
            "`num_classes` should be a whole number of at least 1; for features without a head use "
            f'model.get_layer("features").output. Received: num_classes={num_classes!r}'
        )
    native, smallest = variant.image_size, family.smallest_side(args)
    channels_last = data_format == "NHWC"
    native_shape = (native, native, 3) if channels_last else (3, native, native)
    shape = tuple(native_shape if input_shape is None else input_shape)
    sides, channels = (shape[:2], shape[2:]) if channels_last else (shape[1:], shape[:1])
    if len(shape) != 3 or not all(channels) or any(n is not None and n < smallest for n in sides):
        order = "(height, width, channels)" if channels_last else "(channels, height, width)"
        raise ValueError(
            f"`input_shape` should be {order} in {data_format}, with sides of at least {smallest} "
            f"pixels and a number of channels. Received: input_shape={shape}"
        )
    images = tf.keras.Input(shape, name="images")
    x = family.body(images, layers, **args)
    logits = family.head(x, int(num_classes), make, args)  # Keras 3 refuses NumPy's integers
    return _model(images, logits, name or variant.name.rpartition(":")[2])


def _build_reader(
    family: Family, *, dtype: str | None = None, name: str | None = None, **args: Any
) -> tf.keras.Model:
    inputs = []
    for read in family.reads:
        axes, input_dtype = texts.INPUTS[read]
        inputs.append(tf.keras.Input((None, *axes), dtype=input_dtype, name=read))
    return _model(inputs, family.body(inputs, dtype, **args), name)


def _model(
    inputs: tf.Tensor | list[tf.Tensor], outputs: tf.Tensor, name: str | None
) -> tf.keras.Model:
    """Returns the Keras model; raises Python's recursion limit meanwhile, for deep networks."""
    # tf-keras follows the graph back from the outputs by recursion.
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, 20_000))  # ResNet-1202 needs 5,000
    try:
        return tf.keras.Model(inputs, outputs, name=name)
    finally:
        sys.setrecursionlimit(limit)
