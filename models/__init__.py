"""Verified models by name: `build("resnet56_tf", data_format="NCHW")`, `names()`.

Importing this package imports no TensorFlow; building a model does. Whichever Keras the
importing project uses (`tf.keras` as Keras 3 or as tf-keras 2) is the one the model is made of,
and none of its global settings is touched.
"""

from difflib import get_close_matches
from functools import partial
from importlib import import_module

from .catalog import VARIANTS, Variant


def names() -> list[str]:
    """The names of all variants, in catalogue order."""
    return list(VARIANTS)


def get(name: str) -> Variant:
    """The catalogue row of a variant. Raises ValueError, with the nearest name."""
    if name not in VARIANTS:
        near = get_close_matches(name, VARIANTS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(VARIANTS)}"
        raise ValueError(
            f"`name` should be a model of the catalogue; {hint} Received: name={name!r}"
        )
    return VARIANTS[name]


def build(name: str, **overrides):
    """Builds a variant as a `tf.keras.Model` that returns logits.

    Args:
      name: a name out of `names()`.
      **overrides: arguments of the family's own `build` (`data_format`, `num_classes`,
        `input_shape`, `dtype`, ...) that replace the variant's.
    """
    variant = get(name)
    family = import_module(f"{__name__}.{variant.family}")
    return family.build(**{"name": name, **variant.args, **overrides})


def __getattr__(name: str):
    if name in VARIANTS:  # `from dawnbench_tf.models import resnet56_tf`
        return partial(build, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
