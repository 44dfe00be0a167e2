"""Readers' training: two devices as one; dropout apart. bfloat16: conformance/test_sixteen_bits.py.

Of the two whose layers are our own throughout. CURVE takes any: DrQA and QANet agree, and take
another minute and a half.
"""

import json
import subprocess

import pytest

from tests import warm

CURVE = """
import json, sys
from dataclasses import replace
import tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
from dawnbench_tf import models, recipes
from dawnbench_tf.data import dataset, qa_mini
from dawnbench_tf.data.dataset import Placement
from dawnbench_tf.models.layers.dropout import Dropout
from dawnbench_tf.training import fitting


class Losses(tf.keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs):
        values.append(float(logs["loss"]) * (batch + 1) - sum(values))

name = sys.argv[1]
recipe = recipes.get("squad/bert_tiny" if models.get(name).wordpieces else "qa_mini/drqa")
recipe = recipe.with_values(bucket_boundaries=(110,))
recipe = replace(recipe, task="squad", model=name, batch_size=4, epochs=1)
recipe = recipe.with_values(schedule="constant", learning_rate=0.001, clip_norm=1.0)
splits = qa_mini.generate(18, 6, seed=1, form=recipe.data)
one, two = tf.distribute.OneDeviceStrategy, tf.distribute.MirroredStrategy
for strategy in (one("CPU:0"), two(["CPU:0", "CPU:1"])):
    values = []
    data = dataset.from_splits(recipe, splits, Placement(strategy))
    model = fitting.build(data)
    for layer in model._flatten_layers():
        if isinstance(layer, Dropout):
            layer.rate = 0.0
    steps = data.steps_per_epoch
    model.fit(data.training_batches(), steps_per_epoch=steps, verbose=0, callbacks=[Losses()])
    print(json.dumps(values))
"""


@pytest.mark.long  # test_strategies.py averages gradients with the same code
@pytest.mark.parametrize("name", ["bert_tiny_span", "fastfusionnet"])
def test_two_devices_give_one_device_s_curve(name):
    command = [*warm.python(), "-c", CURVE, name]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    one, two = (json.loads(line) for line in done.stdout.splitlines() if line.startswith("["))
    assert len(one) == 5 and min(one) > 0
    assert two == pytest.approx(one, rel=1e-3)
