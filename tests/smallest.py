"""The smallest network of each kind, in which its family's layers are all there."""

from typing import Any

from dawnbench_tf import models

_DEEP = (26, 50, 56, 101, 152)  # ImageNet's ResNets with bottlenecks
SIZES = {  # family: overrides of the catalogue's arguments
    "airbench": lambda args: {"widths": (32, 64, 64)},
    "amoebanets": lambda args: {"cells": 3, "filters": 16, "dropout": 0.0},
    "basenets": lambda args: {"units": 1},
    "berts": lambda args: {"layers": 2, "hidden": 8, "heads": 2},
    "bidafs": lambda args: {"hidden": 3, "character_filters": 4},
    "cifar_resnets": lambda args: {
        "depth": 11 if args.get("block") == "bottleneck" else 10 if "widen" in args else 8,
        **({"widen": 2} if "widen" in args else {}),
        **({"cardinality": 2, "base_width": 16} if "cardinality" in args else {}),
    },
    "densenets": lambda args: {"depth": 10, "growth": 8},
    "drqas": lambda args: {"hidden": 3, "layers": 2},
    "fastfusionnets": lambda args: {"hidden": 3},
    "imagenet_resnets": lambda args: {"depth": 26 if args["depth"] in _DEEP else 18},
    "imported": lambda args: {},
    "qanets": lambda args: {"hidden": 8, "heads": 2, "depth": 2, "character_width": 4},
    "resnet9s": lambda args: {},
    "tpu_qanets": lambda args: {"hidden": 8, "heads": 2},
}


def smallest(name: str) -> dict[str, Any]:
    """The variant's kind at its smallest size: arguments of `build`."""
    row = models.get(name)
    return {**row.args, **SIZES[row.family](row.args)}
