"""ResNets of four stages, for 224x224 images or, with a CIFAR stem, for 32x32.

He et al. 2015 (v1, arXiv 1512.03385), Gross & Wilber 2016 (v1.5: the stride in the 3x3), He et al.
2016 (v2: pre-activation, arXiv 1603.05027), He et al. 2018 (-D, arXiv 1812.01187), and
keras.applications' own ResNetV2, whose stages stride in their last units.
"""

from functools import partial

import tensorflow as tf

from . import blocks, factories

DEPTHS = {
    18: ("basic", (2, 2, 2, 2)),
    26: ("bottleneck", (2, 2, 2, 2)),
    34: ("basic", (3, 4, 6, 3)),
    50: ("bottleneck", (3, 4, 6, 3)),
    101: ("bottleneck", (3, 4, 23, 3)),
    152: ("bottleneck", (3, 8, 36, 3)),
}


def build(
    *,
    depth,
    version="v1.5",
    stem="imagenet",
    norm_epsilon=1e-5,
    synchronized=False,
    num_classes=1000,
    input_shape=None,
    data_format="NHWC",
    dtype=None,
    name=None,
) -> tf.keras.Model:
    """A four-stage ResNet, images to logits.

    Args:
      depth: 18 or 34 (basic blocks), 26, 50, 101 or 152 (bottleneck blocks).
      version: of bottlenecks, "v1" (the stride in the first 1x1) or "v1.5" (in the 3x3), which
        are one with basic blocks; "v1.5d" (-D: a stem of three 3x3, shortcuts that pool); "v2"
        (pre-activation); "v2_keras" (keras.applications': BN after the stem's pool, biases where
        no BN follows, the stride in a stage's last unit).
      stem: "imagenet" (7x7 and max pool, a quarter of the side) or "cifar" (3x3, the whole side).
      norm_epsilon: BN's epsilon.
      input_shape: as in `cifar_resnets`; default 224x224x3, sides of 32 pixels at least; with a
        CIFAR stem 32x32x3 and 8.
      synchronized, num_classes, data_format, dtype, name: as in `cifar_resnets`.

    Returns:
      A `tf.keras.Model`: images (batch, *input_shape) to float32 logits (batch, num_classes).

    Raises:
      ValueError: an argument is none of these.
    """
    blocks.one_of(DEPTHS, depth=depth)
    blocks.one_of(VERSIONS, version=version)
    blocks.one_of(("imagenet", "cifar"), stem=stem)
    make = factories.layers(
        data_format=data_format, dtype=dtype, synchronized=synchronized, norm_epsilon=norm_epsilon
    )
    block, units = DEPTHS[depth]
    net = VERSIONS[version](block)
    widths = (64, 128, 256, 512) if block == "basic" else (256, 512, 1024, 2048)
    strides = (2, 2, 2, 1) if net.strides_last else (1, 2, 2, 2)
    stages = [blocks.Stage(*stage) for stage in zip(widths, units, strides, strict=True)]
    size, smallest = (32, 8) if stem == "cifar" else (224, 32)
    images = blocks.images(input_shape, data_format, native=size, smallest=smallest)
    x = blocks.residual_stages(_stem(images, stem, version, make), stages, net, make)
    x = make.act()(make.norm()(x)) if net.preactivation else x
    return blocks.network(images, blocks.classifier(x, num_classes, make), name)


def _version(block, strided="3x3", shortcut="projection_bn", bias=False, **residual):
    bottleneck = partial(blocks.bottleneck, strided=strided, bias=bias)
    return blocks.Residual(blocks.basic if block == "basic" else bottleneck, shortcut, **residual)


VERSIONS = {
    "v1": partial(_version, strided="1x1"),
    "v1.5": _version,
    "v1.5d": partial(_version, shortcut="pool_projection_bn"),
    "v2": partial(_version, shortcut="projection", preactivation=True),
    "v2_keras": partial(
        _version,
        shortcut="projection_bias",
        bias=True,
        preactivation=True,
        active_stem=False,
        strides_last=True,
    ),
}


def _stem(x, stem, version, make):
    if stem == "cifar":
        return make.act()(make.norm()(make.conv(64, 3)(x)))
    if version == "v2_keras":
        return make.max_pool(3, 2)(make.conv(64, 7, 2, use_bias=True)(x))
    if version == "v1.5d":
        for filters, strides in ((32, 2), (32, 1)):
            x = make.act()(make.norm()(make.conv(filters, 3, strides)(x)))
        x = make.conv(64, 3)(x)
    else:
        x = make.conv(64, 7, 2)(x)
    return make.max_pool(3, 2)(make.act()(make.norm()(x)))
