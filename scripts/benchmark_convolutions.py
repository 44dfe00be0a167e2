"""Measures the share of a training step that its convolutions would take alone, at their fastest.

    .venv/bin/python scripts/benchmark_convolutions.py [NETWORK [BATCH [PRECISION [ROUNDS]]]]

The limit is a loop over the network's convolutions (forward and both gradients), each run alone and
in its fastest form. The step is the whole training step: loss, gradients, update. Both are timed in
turn, in one process; medians over rounds.
"""

import statistics
import sys

import numpy as np
import side_by_side

from dawnbench_tf import machine


def main(network="airbench94", batch="1024", precision="mixed_bfloat16", rounds="5"):
    """Prints the times of each convolution's forms, then limit, step and share."""
    with machine.importing():
        import tensorflow as tf

        from dawnbench_tf import models
        from dawnbench_tf.models import factories, networks

    tf.get_logger().setLevel("ERROR")  # hundreds of functions are traced
    batch, rounds = int(batch), int(rounds)
    variant = models.get(network)
    model = networks.build(variant, {**variant.args, "dtype": precision}, factories.TRAINING)
    step = _step(model, batch)
    layers = [layer for layer in model.layers if isinstance(layer, tf.keras.layers.Conv2D)]
    work = [calls for layer in layers for calls in _convolution(layer, batch)]
    del work[1]  # training needs no gradient of the images
    seconds, steps = [[] for _ in work], []
    for _ in range(rounds + 1):  # the first round compiles
        steps.append(side_by_side.seconds(step))
        for times, (_, forms) in zip(seconds, work, strict=True):
            times.append([side_by_side.seconds(call) for call in forms.values()])
    limit = 0.0
    for times, (name, forms) in zip(seconds, work, strict=True):
        medians = [statistics.median(column) for column in zip(*times[1:], strict=True)]
        limit += min(medians)
        shown = ", ".join(f"{form} {t * 1e3:.1f}" for form, t in zip(forms, medians, strict=True))
        print(f"{name:44} {shown} ms")
    ours = statistics.median(steps[1:])
    print(
        f"{network}, batch {batch}, {precision}: convolutions {limit:.3f} s, step {ours:.3f} s, "
        f"share {limit / ours:.2f}"
    )


def _step(model, batch):
    import tensorflow as tf

    from dawnbench_tf.recipe import Optimizer, Recipe
    from dawnbench_tf.training import optimizers

    for layer in model.layers:
        if hasattr(layer, "adapt"):
            layer.adapt(np.random.default_rng(0).normal(size=(100, *model.input_shape[1:])))
    model.compile(
        optimizers.build(Recipe(optimizer=Optimizer(learning_rate=0.001)), [1], model),
        tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=False,
    )
    images, labels = tf.random.normal([batch, *model.input_shape[1:]]), tf.zeros([batch], tf.int32)
    data = tf.data.Dataset.from_tensors((images, labels)).repeat()
    train, batches = model.make_train_function(), iter(data)
    return lambda: train(batches)["loss"].numpy()


def _convolution(layer, batch):
    """Yields (name, {form: call}) for the forward pass and both gradients of a convolution."""
    import tensorflow as tf

    dtype, strides = layer.compute_dtype, list(layer.strides)
    x = tf.cast(tf.random.normal([batch, *layer.input_shape[1:]]), dtype)
    kernel = tf.cast(layer.kernel, dtype)
    upstream = tf.cast(tf.random.normal([batch, *layer.output_shape[1:]]), dtype)
    padding = layer.padding.upper()
    turned = tf.transpose(kernel[::-1, ::-1], [0, 1, 3, 2])

    def forward():
        return tf.nn.conv2d(x, kernel, strides, padding)

    def input_gradient():
        return tf.nn.conv2d_transpose(upstream, kernel, x.shape, strides, padding)

    def input_gradient_forward():
        return tf.nn.conv2d(upstream, turned, 1, "SAME")

    def kernel_gradient():
        sizes = {"filter_sizes": kernel.shape, "strides": [1, *strides, 1], "padding": padding}
        return tf.raw_ops.Conv2DBackpropFilter(input=x, out_backprop=upstream, **sizes)

    def kernel_gradient_products():
        from dawnbench_tf.models.layers import convolution

        return convolution._kernel_gradient(x, upstream)

    forms = {"forward": {"TensorFlow": forward}}
    forms["input's gradient"] = {"TensorFlow": input_gradient}
    forms["kernel's gradient"] = {"TensorFlow": kernel_gradient}
    if kernel.shape[:2] == [3, 3] and strides == [1, 1] and padding == "SAME":
        forms["input's gradient"]["as a convolution"] = input_gradient_forward
        forms["kernel's gradient"]["as products"] = kernel_gradient_products
    shape = "x".join(map(str, (*layer.input_shape[1:], kernel.shape[-1])))
    for name, calls in forms.items():
        yield f"{shape}, {name}", {form: _synchronous(tf.function(c)) for form, c in calls.items()}


def _synchronous(function):
    return lambda: function()[(0,) * 4].numpy()


if __name__ == "__main__":
    main(*sys.argv[1:])
