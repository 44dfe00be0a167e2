"""Trains 60 steps of a recipe on several devices and prints how they differ from its author's.

Run as a process of its own, since a process can make its devices only once:

    python tests/training/mirrored_steps.py wrn_22_6_8gpu [FIELD=VALUE of the recipe, as JSON, ...]
"""

import json
import sys

import numpy as np
import tensorflow as tf

from dawnbench_tf import recipes
from dawnbench_tf.clock import Clock
from dawnbench_tf.data import dataset, placement
from dawnbench_tf.data.images import splits
from dawnbench_tf.models.layers import views
from dawnbench_tf.recipe.options import RunOptions
from dawnbench_tf.training import fitting, strategies
from tests.training import source_steps
from tests.training.source_steps import BAIDUNET9P, LOWER, SMALL, STEPS, STEPS_PER_EPOCH, ahead

APPLE_RATES = {"learning_rate": 1.5 * LOWER**2 / 2, "weight_decay": 7.5e-4 * LOWER**2 / 2}
APPLE = {**ahead((0, 3.6, 16), (0, 1.5, 0.15)), **APPLE_RATES}
# fastai cuts the first part of the cycle to whole steps: 87 of 87.5.
FASTAI = {"learning_rate": 2.0 * LOWER**2, "schedule_epochs": (0, 87 / 5, 174 / 5, 40)}
# recipe: (devices, examples in a batch, side of images, arguments of the network, changed settings)
SYSTEMS = {
    "resnet9_kakao_4gpu": (4, 32, 14, SMALL, {"learning_rate": 1.6 * LOWER**2}),
    "resnet9_apple": (2, 32, 32, {**SMALL, "ghost_group": 8}, APPLE),
    "baidunet9p": (2, 16, 32, SMALL, BAIDUNET9P),
    "wrn_22_6_8gpu": (2, 16, 16, {"depth": 8, "widen": 1}, FASTAI),
}


def open_data(recipe, strategy):
    """Returns a data set under the strategy with as many examples as make the fixture's epochs."""
    count = STEPS_PER_EPOCH * recipe.batch_size
    images, labels = np.zeros((count, 32, 32, 3), np.uint8), np.zeros(count, np.int64)
    split = splits.in_memory(images, labels)
    return dataset.from_splits(recipe, splits.Splits(split, split), dataset.Placement(strategy))


def distribute(batches, data):
    """Returns the distributed data set of recorded batches: each device's part of each."""
    strategy = data.placement.strategy
    images, labels = map(np.stack, zip(*batches, strict=True))
    share = images.shape[1] // strategy.num_replicas_in_sync

    def make_pipeline(context):
        part = placement.own_replicas(strategy, context)
        examples = slice(part.start * share, part.stop * share)
        own = tf.data.Dataset.from_tensor_slices((images[:, examples], labels[:, examples]))
        return own.with_options(placement.without_autotune())

    return data.placement.distribute(make_pipeline)


def main(name, changes):
    devices, size, side, small, settings = SYSTEMS[name]
    strategy = strategies.build(RunOptions(strategy="mirrored", logical_cpus=devices), Clock())
    settings = {"precision": "float64", "batch_size": size, **settings, **changes}
    data = open_data(recipes.get(f"cifar10/{name}", **settings), strategy)
    with source_steps.building(side, small):
        model = fitting.build(data)
    del model.train_step  # which would augment the data set's images
    recorded = source_steps.read(f"{name}_on_{devices}")
    source_steps.set_weights(model, recorded)
    batches = distribute(source_steps.batches(STEPS, size, side), data)
    model.fit(batches, steps_per_epoch=STEPS, verbose=0)
    with_views = views.with_views(model, data.recipe.data.test_views, "NHWC")
    ((images, _),) = source_steps.batches(1, size, side)
    logits = tf.function(lambda: strategy.run(with_views, (images,)))()
    logits = strategy.experimental_local_results(logits)[0].numpy()
    scale = np.abs(recorded["logits"]).max()
    differences = {
        "weights": float(source_steps.largest_difference(model, recorded)),
        "logits of the first device": float(np.abs(logits - recorded["logits"]).max() / scale),
    }
    print(json.dumps(differences))


if __name__ == "__main__":
    main(sys.argv[1], {k: json.loads(v) for k, v in (a.split("=") for a in sys.argv[2:])})
