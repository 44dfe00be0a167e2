"""Registration of our layers with Keras."""

from inspect import signature
from typing import Any

import tensorflow as tf


def register(cls: Any) -> Any:
    """A decorator: registers a layer, whose config has each argument of its own `__init__`.

    Arguments are attributes of the same names. Without a `get_config` tf-keras saves a layer's
    first arguments: the dtype None, of whatever policy it is, and the `trainable` that a file had.
    """
    own = signature(cls.__init__).parameters.values() if "__init__" in vars(cls) else ()
    names = [item.name for item in own if item.kind is item.POSITIONAL_OR_KEYWORD][1:]

    def get_config(self: Any) -> dict[str, Any]:
        config: dict[str, Any] = super(cls, self).get_config()
        return config | {name: getattr(self, name) for name in names}

    if "get_config" not in vars(cls):
        cls.get_config = get_config
    return tf.keras.utils.register_keras_serializable(package="dawnbench_tf")(cls)
