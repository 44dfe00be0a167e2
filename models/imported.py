"""Networks of others: a function that returns a Keras classifier, named MODULE:FUNCTION.

The function is one of Keras's, `keras.applications:ConvNeXtTiny`, or your own. `_call` passes
`input_shape`, `classes` and `num_classes`, to Keras's also the arguments of `_UNTRAINED`, if the
function has a parameter of that name.
"""

from collections.abc import Callable
from difflib import get_close_matches
from inspect import signature
from typing import Any

import numpy as np
import tensorflow as tf

from . import user_modules
from .factories import Layers
from .networks import Family

_UNTRAINED = {  # Keras's applications: no download, logits, no standardization of images
    "weights": None,
    "classifier_activation": None,
    "include_preprocessing": False,
}


def body(images: tf.Tensor, layers: Callable[..., Layers], *, function: str) -> tf.Tensor:
    """Returns the images; `_logits` calls the function, which builds the network and its head.

    Args:
      function: MODULE:FUNCTION.
    """
    return images


def _logits(images: tf.Tensor, num_classes: int, make: Layers, args: Any) -> tf.Tensor:
    name = args["function"]
    if make.axis == 1:
        raise ValueError(f"`data_format` should be NHWC for {name}. Received: data_format='NCHW'")
    if getattr(make.norm, "keywords", {}).get("synchronized"):
        text = f"`synchronized` should be False for {name}, whose layers are its own"
        raise ValueError(f"{text}. Received: synchronized=True")
    function, policies = _function(name), tf.keras.mixed_precision
    before = policies.global_policy()
    try:
        if make.dtype:
            policies.set_global_policy(make.dtype)
        network = _call(function, tuple(images.shape[1:]), num_classes)
        # `call` of a functional model adds its layers to ours; any other model is one layer.
        called = network.call if hasattr(network, "_network_nodes") else network
        logits: Any = called(images) if isinstance(network, tf.keras.Model) else None
    except (Exception, SystemExit) as error:  # a user's function may raise anything
        took = "it is called with `input_shape` and `num_classes` or `classes`"
        hint = f"; {took}" * isinstance(error, TypeError)
        raise ValueError(f"{name} raised {type(error).__name__}: {error}{hint}") from error
    finally:
        if policies.global_policy().name != before.name:
            policies.set_global_policy(before)
    if not isinstance(network, tf.keras.Model):
        kind = f"{type(network).__module__}.{type(network).__name__}"
        text = f"should return a tf.keras.Model of {tf.keras.__name__}, not {kind}"
        raise ValueError(f"{name} {text}")
    if not hasattr(logits, "shape"):
        raise ValueError(f"{name} should return one output, logits (batch, {num_classes})")
    if tuple(logits.shape[1:]) != (num_classes,):
        text = f"should return logits (batch, {num_classes}), not {tuple(logits.shape)}"
        hint = "; it needs an argument `num_classes` or `classes`" * (len(logits.shape) == 2)
        raise ValueError(f"{name} {text}{hint}")
    image = tf.random.stateless_normal((1, *images.shape[1:]), seed=(0, 0))
    to_array = tf.keras.ops.convert_to_numpy if hasattr(tf.keras, "ops") else np.asarray
    values = to_array(network(image.numpy())).astype(np.float32)
    if num_classes > 1 and values.min() >= 0 and abs(values.sum() - 1) < 1e-2:
        raise ValueError(f"{name} should return logits; its outputs are those of a softmax")
    taken = any(layer.name == "logits" for layer in network.layers)
    return make.to_float32(1.0, name=None if taken else "logits")(logits)


def _call(function: Callable[..., Any], shape: tuple[int, ...], num_classes: int) -> Any:
    """Calls the function with the arguments that it has; **kwargs have the first two."""
    values = {"input_shape": shape, "num_classes": num_classes, "classes": num_classes}
    parameters = signature(function).parameters
    accepted = {*parameters}
    applications = function.__module__.split(".")[0] == tf.keras.Model.__module__.split(".")[0]
    if any(item.kind is item.VAR_KEYWORD for item in parameters.values()):
        # tf-keras's ResNet50 and its like hand them on.
        accepted |= {"classifier_activation"} if applications else {"input_shape", "num_classes"}
    values |= _UNTRAINED if applications else {}
    network = function(**{key: value for key, value in values.items() if key in accepted})
    if applications:  # EfficientNetB0 to B7 have no argument against their preprocessing
        for layer in network.layers:
            if isinstance(layer, tf.keras.layers.Rescaling):
                layer.scale, layer.offset = 1.0, 0.0
    return network


def _function(name: str) -> Callable[..., tf.keras.Model]:
    """Imports MODULE:FUNCTION. Raises ValueError if there is none."""
    module_name, _, attribute = name.partition(":")
    if f"{module_name}.".startswith("keras.applications."):
        module: Any = tf.keras  # whichever Keras that is
        for part in module_name.split(".")[1:]:
            module = getattr(module, part, None)
        if module is None:
            raise ValueError(f"tf.keras has no {module_name.removeprefix('keras.')}")
    else:
        try:
            module = user_modules.load(module_name)
        except (Exception, SystemExit) as error:  # a user's module may raise anything
            here = f"{module_name}.py should be in the working directory, or installed"
            absent = isinstance(error, ModuleNotFoundError) and module_name.startswith(
                str(error.name)
            )
            hint = f"; {here}" * absent
            raise ValueError(f"{module_name} can't be imported: {error}{hint}") from error
    function = getattr(module, attribute, None)
    if not callable(function):
        names = [key for key, value in vars(module).items() if callable(value) and key[0] != "_"]
        near = get_close_matches(attribute, names, n=1)
        hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(names)}"
        raise ValueError(f"{module_name} has no function {attribute}; {hint}")
    return function


FAMILY = Family(body, head=_logits, smallest_side=lambda args: 1)
