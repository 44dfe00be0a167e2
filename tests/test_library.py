"""The library from Python, as docs/library.md and docs/own_data.md show it, in new processes."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import tensorflow as tf

from dawnbench_tf import recipes, runs, tasks
from dawnbench_tf.data import dataset
from dawnbench_tf.options import RunOptions
from dawnbench_tf.refusals import Refusal
from dawnbench_tf.train import train
from tests import warm
from tests.data.own.conftest import write_folder

ROOT = Path(__file__).parents[1]


def blocks(page):
    """Returns the Python blocks of a page."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(r"```python\n(.+?)```", text, re.DOTALL)


TRAINED, LOADED, TIMED = blocks("docs/library.md")


def run(code, folder):
    done = subprocess.run(
        [*warm.python(), "-c", code], cwd=folder, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_the_page_trains_loads_tunes_exports_and_times(trained_digits, tmp_path):
    shutil.copytree(trained_digits / "run", tmp_path / "digits")  # `train` has nothing left to do
    said, after = run(TRAINED, tmp_path), run(LOADED + TIMED, tmp_path)
    assert said.startswith("True {'epoch': ") and "resnet8-v1-pad" in said
    trained = runs.read(tmp_path / "digits")
    score, tuned, time, *steps = after.splitlines()
    assert eval(score) == {"top1Accuracy": trained.rows[-1]["top1Accuracy"]}
    assert eval(tuned)[-1] > 0.9 and " ms, ± " in time
    assert (tmp_path / "five_digits/saved_model.pb").is_file()
    assert "ms a step at the median" in "".join(steps)


def test_the_page_on_data_of_your_own_trains_and_times_arrays(tmp_path):
    _, code = blocks("docs/own_data.md")
    assert run(code, tmp_path).splitlines() == ["True 10 small_digits", "True"]


def test_the_page_on_data_of_your_own_classifies_a_photo(tmp_path):
    code, _ = blocks("docs/own_data.md")
    data = write_folder(tmp_path / "data")
    task = tasks.find_task("folder", "colours")
    recipe = recipes.get(
        "own/photos", task=task, model="resnet18_v1", image_sizes=(32,), batch_size=4, epochs=4
    )
    recipe = recipe.with_values(threshold=99, schedule="constant", schedule_epochs=())
    trained = train(recipe, RunOptions(data_dir=str(data)), tmp_path / "RUN")
    opened = dataset.open(trained.recipe, str(data))
    photo = opened.splits.test.names.index("val/red/005.jpg")
    (tmp_path / "photo.jpg").write_bytes((data / "val/red/005.jpg").read_bytes())
    name, probability = run(code, tmp_path).split()
    logits = trained.model()(*opened.examples()[photo])[0]
    assert name == opened.splits.classes[tf.argmax(logits)]
    assert float(probability) == pytest.approx(
        float(tf.reduce_max(tf.nn.softmax(logits))), rel=1e-5
    )


def test_a_function_prints_nothing_and_its_run_is_what_the_folder_says(tmp_path, capfd):
    from dawnbench_tf import terminal

    terminal.show(False)
    recipe = recipes.get("digits/resnet8", epochs=1, synthetic="decoded")
    epochs = []

    import tensorflow as tf

    class Seen(tf.keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs):
            epochs.append(epoch)

    options = RunOptions(peak_tflops=1.0)
    trained = train(recipe, options, tmp_path / "run", callbacks=[Seen()])
    assert epochs == [0] and capfd.readouterr() == ("", "")
    assert trained == runs.read(tmp_path / "run") and not trained.reached
    assert "synthetic data" in " ".join(trained.entry.misc["violations"])
    assert trained.used["examplesPerSecond"] > 0
    with pytest.raises(Refusal, match="--max_steps=3: is for training.speed_test"):
        train(recipe, RunOptions(max_steps=3), tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_examples_from_elsewhere_train_and_are_never_an_entry(tmp_path):
    import numpy as np

    from dawnbench_tf.data.images.splits import Splits, in_memory

    draw = np.random.default_rng(0)
    images = draw.integers(0, 256, (130, 32, 32, 3), np.uint8)
    split = in_memory(images, np.zeros(130, np.int64))  # one class, so that it is learnt at once
    recipe = recipes.get("digits/resnet8", epochs=1, threshold=11)
    run = train(recipe, RunOptions(peak_tflops=1.0), tmp_path, data=Splits(split, split))
    assert run.reached and "not_an_entry" in str(run.entry_path)
    assert any("given" in text for text in run.entry.misc["violations"])


def test_a_process_that_has_used_keras_3_is_told_what_to_set(tmp_path):
    code = """
import os
os.environ["TF_USE_LEGACY_KERAS"] = "0"
import tensorflow as tf
tf.keras.Model
from dawnbench_tf import recipes
from dawnbench_tf.train import train
train(recipes.get("digits/resnet8"), output="run")
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1 and not (tmp_path / "run").exists()
    last = done.stderr.splitlines()[-1]
    assert 'set os.environ["TF_USE_LEGACY_KERAS"] = "1" before' in last


def test_weights_of_a_run_are_whole_or_refused(tmp_path):
    recipe = recipes.get("digits/resnet8", epochs=1, synthetic="decoded")
    run = train(recipe, RunOptions(peak_tflops=1.0), tmp_path / "run")
    path = tmp_path / "run/checkpoint-1/weights.npz"
    content = path.read_bytes()
    path.write_bytes(content[:-10] + bytes(10))
    with pytest.raises(Refusal, match="weights.npz: damaged"):
        run.model()
    path.write_bytes(content)
    assert run.model().output_shape == (None, 10)
