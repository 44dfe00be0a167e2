"""Variant, a row of the catalogue. This module does not import TensorFlow."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .published_top1 import TOP1


@dataclass(frozen=True)
class Variant:
    """A named model: its family, the family's arguments, and figures that tests verify."""

    name: str
    family: str  # module of this package whose `body` takes `args`
    args: Mapping[str, Any] = field(hash=False)
    parameters: int  # trainable ones, with the native input and number of classes
    multiply_adds: int | None  # convolutions, dense layers; one native image; None: readers
    source: str  # paper or code that defines the network
    top1: float | None = None  # published top-1 accuracy, percent
    top1_source: str = ""  # where `top1` was published
    inputs: str = "images"  # or "questions"
    wordpieces: bool = False  # whether a reader reads WordPieces, not words
    num_classes: int = 10  # classes of the native data set; 0 for readers
    image_size: int = 32  # height and width of the native input, pixels; 0 for readers


def rows(family, source, models, data=None, **common) -> list[Variant]:
    """Returns the rows of several models of a family and a source.

    Args:
      family: module whose `body` builds them.
      source: paper or code.
      models: (name, args, parameters, multiply-adds) of each.
      data: fields that depend on the native data set, if it is not CIFAR-10.
      **common: arguments that all of the models have.
    """
    variants = []
    for name, args, parameters, multiply_adds in models:
        top1, top1_source = TOP1.get(name, (None, ""))
        counts = {"parameters": parameters, "multiply_adds": multiply_adds}
        published = {"source": source, "top1": top1, "top1_source": top1_source}
        facts: dict[str, Any] = {**counts, **published, **(data or {})}
        variants.append(Variant(name, family, {**common, **args}, **facts))
    return variants
