"""Variant, a row of the catalogue. This module does not import TensorFlow."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .published_top1 import TOP1


@dataclass(frozen=True)
class Variant:
    """A named model: its family, the family's arguments, and figures that tests verify.

    Attributes:
      name: name of the variant, for `build`.
      family: module of the family that builds it.
      args: arguments of the family's `body`.
      parameters: number of trainable parameters with the native input and number of classes.
      multiply_adds: multiply-adds of convolutions and dense layers for one image of the native
        size; None for readers.
      source: paper or code that defines the network.
      top1: published top-1 accuracy in percent; None if none was published.
      top1_source: source of `top1`.
      inputs: "images" or "questions".
      wordpieces: whether a reader takes WordPieces instead of words.
      num_classes: number of classes of its data set; 0 for readers.
      image_size: native height and width in pixels; 0 for readers.
    """

    name: str
    family: str
    args: Mapping[str, Any] = field(hash=False)
    parameters: int
    multiply_adds: int | None
    source: str
    top1: float | None = None
    top1_source: str = ""
    inputs: str = "images"
    wordpieces: bool = False
    num_classes: int = 10
    image_size: int = 32


def rows(
    family: str,
    source: str,
    models: Iterable[tuple[str, Mapping[str, Any], int, int | None]],
    data: Mapping[str, Any] | None = None,
    **common: Any,
) -> list[Variant]:
    """Returns the rows of models (name, args, parameters, multiply-adds) of a family and a source.

    `data` has the fields that depend on the native data set, if it is not CIFAR-10; `common` the
    arguments that all of the models have.
    """
    variants = []
    for name, args, parameters, multiply_adds in models:
        top1, top1_source = TOP1.get(name, (None, ""))
        counts = {"parameters": parameters, "multiply_adds": multiply_adds}
        published = {"source": source, "top1": top1, "top1_source": top1_source}
        facts: dict[str, Any] = {**counts, **published, **(data or {})}
        variants.append(Variant(name, family, {**common, **args}, **facts))
    return variants
