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

`cifar10`, `imagenet` and `readers` contain the rows, `variant` defines a row, `published_top1` has
accuracies that others published.

May import: nothing of dawnbench_tf.
"""

from collections.abc import Mapping
from types import MappingProxyType

from . import cifar10, imagenet, readers
from .variant import Variant

VARIANTS: Mapping[str, Variant] = MappingProxyType(
    {row.name: row for row in (*cifar10.ROWS, *imagenet.ROWS, *readers.ROWS)}
)
