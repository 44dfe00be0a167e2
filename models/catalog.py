"""Every model this library vouches for, as rows of plain data: no TensorFlow here.

A name decodes as `resnet{depth}_{kind}`:
    _tf        DAWNBench's TensorFlow seeds: pre-activation, leaky ReLU 0.1, BN without scale,
               average-pool + zero-pad shortcuts; at depth 164 `_nb` is the one without
               bottleneck (6n+2, basic blocks), `_b` the one with (9n+2)
    _v1_pad    He et al. 2015, post-activation, option A: strided identity + zero-pad shortcuts
    _v1_proj   He et al. 2015, option B: 1x1 convolution + BN shortcuts where the shape changes
               (DAWNBench's PyTorch seeds)
    _stochastic  Huang et al. 2016, survival falling linearly to 0.5; average-pool + zero-pad
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True)
class Variant:
    """One named model: the family that builds it, with which arguments, and what it must be."""

    name: str
    family: str  # module in this package whose `build` takes `args`
    args: Mapping[str, object] = field(hash=False)
    parameters: int  # trainable, at the native input and 10 classes
    source: str
    published_top1: float | None = None  # percent on the CIFAR-10 test set, as `source` reports it


_SEED_CODE = "DAWNBench seed entries, tensorflow/CIFAR10 (TensorFlow 1.2, 2017)"
_HE = "He et al. 2015, arXiv 1512.03385, table 6"
_TORCH_SEED = "DAWNBench seed entries, pytorch/CIFAR10 (2017)"
_HUANG = "Huang et al. 2016, arXiv 1603.09382"


def _resnet(name, depth, parameters, source, published_top1=None, **args):
    return Variant(
        name, "cifar_resnets", {"depth": depth, **args}, parameters, source, published_top1
    )


def _seed(name, depth, parameters, published_top1=None, **args):
    args = {
        "preactivation": True,
        "leaky_slope": 0.1,
        "norm_scale": False,
        "norm_epsilon": 1e-3,
        **args,
    }
    return _resnet(
        name, depth, parameters, _SEED_CODE, published_top1, **{"shortcut": "pool_pad", **args}
    )


_ROWS = (
    _seed("resnet20_tf", 20, 269_034),
    _seed("resnet56_tf", 56, 850_986),
    _seed("resnet164_nb_tf", 164, 2_596_842, 94.31),
    _seed("resnet164_b_tf", 164, 1_691_146, 94.58, block="bottleneck", shortcut="projection"),
    _resnet(
        "resnet8_v1_pad",
        8,
        75_290,
        "the embedded task's own, He et al.'s rule at n = 1",
        shortcut="stride_pad",
    ),
    _resnet("resnet20_v1_pad", 20, 269_722, _HE, 91.25, shortcut="stride_pad"),
    _resnet("resnet32_v1_pad", 32, 464_154, _HE, 92.49, shortcut="stride_pad"),
    _resnet("resnet44_v1_pad", 44, 658_586, _HE, 92.83, shortcut="stride_pad"),
    _resnet("resnet56_v1_pad", 56, 853_018, _HE, 93.03, shortcut="stride_pad"),
    _resnet("resnet110_v1_pad", 110, 1_727_962, _HE, 93.57, shortcut="stride_pad"),
    _resnet("resnet20_v1_proj", 20, 272_474, _TORCH_SEED),
    _resnet("resnet56_v1_proj", 56, 855_770, _TORCH_SEED),
    _resnet("resnet110_v1_proj", 110, 1_730_714, _TORCH_SEED),
    _resnet("resnet56_stochastic", 56, 853_018, _HUANG, shortcut="pool_pad", final_survival=0.5),
    _resnet(
        "resnet110_stochastic",
        110,
        1_727_962,
        _HUANG,
        94.75,
        shortcut="pool_pad",
        final_survival=0.5,
    ),
)

VARIANTS: Mapping[str, Variant] = MappingProxyType({row.name: row for row in _ROWS})
