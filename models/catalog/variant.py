"""A row of the catalogue: no TensorFlow here."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .published_top1 import TOP1


@dataclass(frozen=True)
class Variant:
    """One named model: the family that builds it, with which arguments, and what it must be."""

    name: str
    family: str  # module in this package whose `body` takes `args`
    args: Mapping[str, Any] = field(hash=False)
    parameters: int  # trainable, at the native input and number of classes
    multiply_adds: int | None  # of convolutions and dense layers, for one image of the native size
    source: str
    top1: float | None = None  # percent, published
    top1_source: str = ""
    inputs: str = "images"  # or "questions"
    wordpieces: bool = False  # whether a reader reads WordPieces, and no words
    num_classes: int = 10  # of its data set; 0 for questions
    image_size: int = 32  # the native input's height and width, in pixels; 0 for questions


def rows(family, source, kinds, data=None, **common) -> list[Variant]:
    """Rows of (name, args, parameters, multiply-adds) of one kind, for one kind of data."""
    variants = []
    for name, args, parameters, multiply_adds in kinds:
        top1, top1_source = TOP1.get(name, (None, ""))
        counts = {"parameters": parameters, "multiply_adds": multiply_adds}
        published = {"source": source, "top1": top1, "top1_source": top1_source}
        facts: dict[str, Any] = {**counts, **published, **(data or {})}
        variants.append(Variant(name, family, {**common, **args}, **facts))
    return variants
