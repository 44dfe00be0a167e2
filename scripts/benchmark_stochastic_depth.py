"""Compares training steps of ResNet-110 with and without stochastic depth.

    .venv/bin/python scripts/benchmark_stochastic_depth.py [ROUNDS]

Both models train in turn in one process, on the same batch of 128 images. With a final survival
probability of 0.5, a quarter of the blocks' work is skipped on average.
"""

import statistics
import sys
import time

from dawnbench_tf import machine

MODELS = ("resnet110_stochastic", "resnet110_v1_pad")
BATCH, STEPS = 128, 10


def steps_per_second(name):
    """Returns a function that trains STEPS steps of the model and returns the steps per second."""
    with machine.importing():
        import tensorflow as tf

        from dawnbench_tf import models

    model = models.build(name)
    optimizer = tf.keras.optimizers.SGD(0.01, momentum=0.9)
    images = tf.random.normal([BATCH, 32, 32, 3])
    labels = tf.random.uniform([BATCH], maxval=10, dtype=tf.int32)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            logits = model(images, training=True)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            loss = tf.reduce_mean(losses)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    def measure():
        start = time.perf_counter()
        for _ in range(STEPS):
            step().numpy()
        return STEPS / (time.perf_counter() - start)

    measure()
    return measure


def main(rounds: int = 7):
    """Prints the median steps per second of both, and the ratio (median and range)."""
    measures = [steps_per_second(name) for name in MODELS]
    pairs = [[measure() for measure in measures] for _ in range(rounds)]
    for name, column in zip(MODELS, zip(*pairs, strict=True), strict=True):
        print(f"{name:22} {statistics.median(column):.2f} steps/s of {BATCH} images")
    ratios = [skipping / plain for skipping, plain in pairs]
    print(f"ratio {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
