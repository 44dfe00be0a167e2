"""The "custom ResNet-9" of the fast CIFAR-10 entries, in the two forms David Page published.

"How to train your ResNet", 2018-2019: the network of the 24-epoch entry, and that of the 10-epoch
recipe, with whitened input, ghost BN without scale, CELU, and pools before the BN.
"""

from functools import partial

import tensorflow as tf

from . import blocks, factories, layers


def build(
    *,
    whitened=False,
    ghost_group=32,
    synchronized=False,
    num_classes=10,
    input_shape=None,
    data_format="NHWC",
    dtype=None,
    name=None,
) -> tf.keras.Model:
    """ResNet-9, images to logits.

    Args:
      whitened: the network of the 10-epoch recipe. Its first layer, `whitening`, has statistics
        to take before training: `model.get_layer("whitening").adapt(images)`.
      ghost_group: examples that the ghost BN of that network takes its statistics over.
      synchronized: as in `cifar_resnets`; ghost BN's groups are small on any hardware, so there
        is nothing to synchronise.
      input_shape: as in `cifar_resnets`, but sides of 8 pixels at least.
      num_classes, data_format, dtype, name: as in `cifar_resnets`.

    Returns:
      A `tf.keras.Model`: images (batch, *input_shape) to float32 logits (batch, num_classes).

    Raises:
      ValueError: an argument is none of these.
    """
    ghost = partial(layers.GhostBatchNormalization, group=ghost_group, scale=False)
    changes = {"norm": ghost, "act": partial(layers.CELU, 0.3)} if whitened else {}
    make = factories.layers(
        data_format=data_format, dtype=dtype, synchronized=synchronized, **changes
    )
    images = blocks.images(input_shape, data_format, native=32, smallest=8)
    x = images
    if whitened:
        x = layers.Whitening(axis=make.axis, dtype=dtype, name="whitening")(x)
    x = make.act()(make.norm()(make.conv(64, 1 if whitened else 3)(x)))
    for filters, has_residual in ((128, True), (256, False), (512, True)):
        x = _halve(x, filters, whitened, make)
        if has_residual:
            x = make.add()([x, _unit(_unit(x, filters, make), filters, make)])
    x = make.global_max(name="features")(x)
    x = make.dense(num_classes, use_bias=False)(x)
    logits = make.to_float32(1 / 16 if whitened else 1 / 8, name="logits")(x)
    return blocks.network(images, logits, name)


def _unit(x, filters, make):
    return make.act()(make.norm()(make.conv(filters, 3)(x)))


def _halve(x, filters, pool_first, make):
    x = make.conv(filters, 3)(x)
    if pool_first:
        return make.act()(make.norm()(make.max_pool(2, 2)(x)))
    return make.max_pool(2, 2)(make.act()(make.norm()(x)))
