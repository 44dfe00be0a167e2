"""The catalogue: a row of plain data for each verified model. It does not import TensorFlow.

A name says family, depth and variant; models that train differently have different names.

    resnet{depth}_tf         DAWNBench's TensorFlow seeds: pre-activation, leaky ReLU 0.1, BN
                             without scale, average-pool + zero-pad shortcuts; at depth 164 `_nb`
                             has basic blocks (6n+2), `_b` bottlenecks (9n+2)
    resnet164_nb_relu        resnet164_nb_tf with ReLU;  resnet50_tensorpack: as in tensorpack
    resnet{depth}_v1_pad     He et al. 2015, option A: strided identity + zero-pad shortcuts
    resnet{depth}_v1_proj    option B: 1x1 convolution + BN where the width changes (PyTorch seeds)
    resnet{depth}_stochastic Huang et al. 2016: survival falls linearly to 0.5
    preact{depth}            He et al. 2016; 164 has bottlenecks, `164_basic` has none
    wrn_{depth}_{widen}      wide ResNets
    resnext{depth}_{c}x{d}d  ResNeXts of c groups of d filters
    densenet_bc_{L}_{k}      DenseNets-BC of depth L and growth rate k
    bidaf, bidaf_{hidden}    BiDAF as in the SQuAD entries; narrower, without dropout, for qa_mini
    qanet, qanet_tpu         QANet as in the paper; as in Google's SQuAD entry
    bert_{size}_span         BERTs with a span head;  minilm_span: MiniLM
    drqa, fastfusionnet      readers of the DrQA and FastFusionNet entries
    resnet9, _whitened       David Page's ResNet-9 of the 24-epoch entry; of the 10-epoch recipe
    resnet9_{author}         Apple's, Kakao Brain's, Laurent Mazare's; `_mish`: Apple's with Mish
    baidunet{8,9,9p}         Baidu's networks made from it
    basenet                  a pre-activation ResNet-18 with narrow last stages and two pools
    airbench{percent}        Keller Jordan's networks, by the accuracy that their training reaches
    amoebanet_d              AmoebaNet-D of Google's entries (N6F256): 6 normal cells, 256 filters
    resnet{depth}_cifar      four stages, 3x3 stem, v1.5 (with basic blocks equal to v1)
    kervresnet34             four stages, 3x3 stem whose output is cubed (kervolution)
    resnet{depth}_v1         four stages, ImageNet: strides in a bottleneck's first 1x1
    resnet{depth}_v1_5       ... in its 3x3;  resnet{depth}d: v1.5 with ResNet-D's changes
    resnet{depth}_v1_slim    TF-slim's v1: strides in the 3x3 of a stage's last unit
    resnet{depth}_v2         pre-activation;  _v2_keras: keras.applications' ResNetV2

The rows are in catalog.tsv.
"""

import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any


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
      top1: published top-1 accuracy in percent, on the CIFAR-10 test set or the ImageNet validation
        set; None if none was published.
      top1_source: source of `top1`; tables and sections are those of `source`.
      inputs: "images" or "questions".
      wordpieces: whether a reader takes WordPieces instead of words.
      num_classes: number of classes of its data set; 0 for readers.
      image_size: native height and width in pixels; 0 for readers.
      block: its blocks, in words.
      shortcut: its shortcuts where the width changes, in words.
      activation: its activation, and whether it comes before the convolutions.
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
    block: str = ""
    shortcut: str = ""
    activation: str = ""


def _variant(cells: Mapping[str, str]) -> Variant:
    """Returns the variant of a row of catalog.tsv, whose cells are JSON but for texts."""
    texts = {name for name, kind in Variant.__annotations__.items() if kind is str}
    values: dict[str, Any] = {
        name: cell if name in texts else json.loads(cell or "null") for name, cell in cells.items()
    }
    args = {name: tuple(v) if isinstance(v, list) else v for name, v in values["args"].items()}
    return Variant(**values | {"args": args, "wordpieces": bool(values["wordpieces"])})


with open(Path(__file__).with_suffix(".tsv"), encoding="utf-8", newline="") as _file:
    _rows = csv.DictReader(_file, delimiter="\t", quoting=csv.QUOTE_NONE)
    VARIANTS: Mapping[str, Variant] = MappingProxyType({r["name"]: _variant(r) for r in _rows})
