"""Every model this library vouches for, as rows of plain data: no TensorFlow here.

Names decode by family; two that train differently never share one.

    resnet{depth}_tf         DAWNBench's TensorFlow seeds: pre-activation, leaky ReLU 0.1, BN
                             without scale, average-pool + zero-pad shortcuts; at depth 164 `_nb`
                             is the one without bottleneck (6n+2), `_b` the one with (9n+2)
    resnet{depth}_v1_pad     He et al. 2015, option A: strided identity + zero-pad shortcuts
    resnet{depth}_v1_proj    option B: 1x1 convolution + BN where the width changes (PyTorch seeds)
    resnet{depth}_stochastic Huang et al. 2016: survival falls linearly to 0.5 (`08`: to 0.8)
    preact{depth}            He et al. 2016; 164 and 1001 have bottlenecks, `164_basic` has none
    wrn_{depth}_{widen}      wide ResNets
    resnext{depth}_{c}x{d}d  ResNeXts of c groups of d filters
    densenet_bc_{L}_{k}      DenseNets-BC of depth L and growth rate k
    bidaf, bidaf_{hidden}    the reader of the SQuAD entries; narrower, no dropout, for qa_mini
    resnet9, _whitened       David Page's of the 24 epochs, and of the 10 epochs
    airbench{percent}        Keller Jordan's, named for the accuracy that its training reaches
    qanet_tpu                the reader of Google's SQuAD entry
    drqa, fastfusionnet      those of the DrQA and FastFusionNet entries
    amoebanet_d              Google's entries' (N6F256): 6 normal cells, 256 filters
    resnet{depth}_cifar      v1.5 of four stages behind a 3x3 stem (with basic blocks: v1)
    resnet{depth}_v1         four stages, ImageNet: the stride in a bottleneck's first 1x1
    resnet{depth}_v1_5       ... in its 3x3;  resnet{depth}d: v1.5 with ResNet-D's tweaks
    resnet{depth}_v2         pre-activation;  _v2_keras: as keras.applications has it

`images` and `readers` hold the rows, `variant` says what a row is, `published_top1` what others
measured.

May import: nothing of dawnbench_tf.
"""

from collections.abc import Mapping
from types import MappingProxyType

from . import images, readers
from .variant import Variant

VARIANTS: Mapping[str, Variant] = MappingProxyType(
    {row.name: row for row in (*images.ROWS, *readers.ROWS)}
)
