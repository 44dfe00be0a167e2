"""The library from Python, as docs/library.md and docs/own_data.md show it, in new processes."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from sklearn.datasets import load_digits

from dawnbench_tf import recipes, runs, terminal
from dawnbench_tf.data.images.splits import Splits, in_memory
from dawnbench_tf.recipe.options import RunOptions
from dawnbench_tf.refusals import Refusal
from dawnbench_tf.train import train
from tests import warm

ROOT = Path(__file__).parents[1]


def blocks(page):
    """Returns the Python blocks of a page."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(r"```python\n(.+?)```", text, re.DOTALL)


SETUP, TRAINED, LOADED, TIMED, COMPARED = blocks("docs/library.md")


def run(code, folder):
    done = subprocess.run(
        [*warm.python(), "-c", code], cwd=folder, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_the_page_trains_loads_tunes_exports_and_times(trained_digits, tmp_path):
    shutil.copytree(trained_digits / "run", tmp_path / "digits")  # `train` has nothing left to do
    said, after = run(SETUP + TRAINED, tmp_path), run(SETUP + LOADED + TIMED, tmp_path)
    trained = runs.read(tmp_path / "digits")
    assert said.startswith(f"True {trained.first_hit['hours'] * 3600} ") and "resnet8" in said
    score, tuned, time, *steps = after.splitlines()
    assert eval(score) == {"top1Accuracy": trained.rows[-1]["top1Accuracy"]}
    assert eval(tuned)[-1] > 0.97 and " ms, ± " in time
    assert (tmp_path / "five_digits/saved_model.pb").is_file()
    assert "ms a step, at the median" in "".join(steps)


@pytest.mark.long
def test_the_page_compares_two_kinds_of_fits(tmp_path):
    x, y = load_digits(return_X_y=True)
    np.savez(tmp_path / "digits.npz", x=x.reshape(-1, 8, 8) * 15, y=y)
    data = "import numpy as np; d = np.load('digits.npz'); x, y = x_test, y_test = d['x'], d['y']"
    lines = [data if "mnist" in line else line for line in COMPARED.splitlines()]
    said = run("\n".join(lines).replace("0.95", "0.8"), tmp_path).splitlines()
    assert data in lines and said[0].startswith("adam: 5 of 5 fits reached it, median")
    assert len(said) >= 3 and (tmp_path / "adam-sgd.png").stat().st_size > 5000


def test_the_page_on_data_of_your_own_trains_and_times_arrays(tmp_path):
    _, code = blocks("docs/own_data.md")
    assert run(code, tmp_path).splitlines() == ["True 10 small_digits", "True"]


def test_a_function_prints_nothing_and_its_run_is_what_the_folder_says(tmp_path, capfd):
    terminal.show(False)
    generated = {"synthetic": "decoded", "train_examples": 640}
    sizes = {"later_batch_sizes": (128,), "batch_size_epochs": (1,)}
    recipe = recipes.get("digits/resnet8", epochs=2, **generated, **sizes)
    epochs = []
    recorder = tf.keras.callbacks.LambdaCallback(on_epoch_end=lambda n, logs: epochs.append(n))
    options = RunOptions(peak_tflops=1.0)
    plateau = tf.keras.callbacks.ReduceLROnPlateau()
    with pytest.raises(ValueError, match="`callbacks` should have none of LearningRateSchedu"):
        train(recipe, options, tmp_path / "run", callbacks=[plateau])
    with pytest.raises(ValueError, match="`callbacks` should be Keras callbacks. Received: 3"):
        train(recipe, options, tmp_path / "run", callbacks=[3])
    assert not (tmp_path / "run").exists()
    trained = train(recipe, options, tmp_path / "run", callbacks=iter([recorder]))
    assert epochs == [0, 1] and capfd.readouterr() == ("", "")
    assert trained == runs.read(tmp_path / "run") and not trained.reached
    assert "synthetic data" in " ".join(trained.entry.misc["violations"])
    assert trained.used["examplesPerSecond"] > 0
    with pytest.raises(Refusal, match="--max_steps=3: is for training.speed_test"):
        train(recipe, RunOptions(max_steps=3), tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_examples_from_elsewhere_train_go_on_and_are_never_an_entry(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (130, 32, 32, 3), np.uint8)
    split = in_memory(images, np.zeros(130, np.int64))  # one class, so that it is learnt at once
    recipe = recipes.get("digits/resnet8", epochs=1, threshold=11)
    run = train(recipe, RunOptions(peak_tflops=1.0), tmp_path, data=Splits(split, split))
    assert run.reached and "not_an_entry" in str(run.entry_path)
    assert any("given in Python" in text for text in run.entry.misc["violations"])
    assert train(recipe, output=tmp_path, data=Splits(split, split)).rows == run.rows


def test_in_keras_3_a_run_s_model_is_the_same_and_training_says_what_to_set(
    trained_digits, under_keras_3, tmp_path
):
    image = tf.random.stateless_normal([1, 32, 32, 3], [1, 2])
    logits = runs.read(trained_digits / "run").model()(image, training=False)
    under_keras_3(f"""
import numpy as np, tensorflow as tf
from dawnbench_tf import runs
from dawnbench_tf.recipe.options import RunOptions
from dawnbench_tf.train import train
from dawnbench_tf.training import speed_test
image = tf.random.stateless_normal([1, 32, 32, 3], [1, 2])
model = runs.read({str(trained_digits / "run")!r}).model()
assert type(model).__module__.startswith("keras.")
np.testing.assert_allclose(model(image, training=False), {logits.numpy().tolist()}, atol=1e-4)
refused = []
for function in (
    lambda: speed_test.measure("digits/resnet8", RunOptions(max_steps=2)),
    lambda: train("digits/resnet8", output={str(tmp_path / "run")!r}),
):
    try:
        function()
    except ValueError as error:
        refused += ['set os.environ["TF_USE_LEGACY_KERAS"] = "1" before' in str(error)]
assert refused == [True, True], refused
""")
    assert not (tmp_path / "run").exists()


def test_a_refusal_in_a_notebook_is_one_line_that_names_arguments():
    with pytest.raises(Refusal) as raised:
        recipes.get("digits/resnet8", whitening_bias_falls=True)
    assert str(raised.value) == "--whitening_bias_falls=true: requires --whitening_bias_epochs"
    lines = raised.value._render_traceback_()
    assert lines == ["Refusal: whitening_bias_falls=true: requires `whitening_bias_epochs`"]
    again = Refusal("a: --epochs=3 or --download; dawnbench train --output_dir=RUN goes on")
    line = "Refusal: a: epochs=3 or `download`; dawnbench train --output_dir=RUN goes on"
    assert again._render_traceback_() == [line]


def test_runs_and_recipes_print_in_a_line(trained_digits):
    run = runs.read(trained_digits / "run")
    hit = run.first_hit
    score = f"top1Accuracy {hit['top1Accuracy']} after {hit.seconds:.1f} s"
    assert repr(run).endswith(f"digits/resnet8, {score}>")
    text = "model='resnet8_v1_pad', threshold=98.0, epochs=30, batch_size=64, seed=0"
    assert repr(run.recipe) == f"<Recipe digits/resnet8: {text}; values() has all>"


def test_weights_of_a_run_are_whole_or_refused(trained_digits, tmp_path):
    run = runs.read(shutil.copytree(trained_digits / "run", tmp_path / "run"))
    *_, path = sorted(run.folder.glob("checkpoint-*/weights.npz"), key=os.path.getmtime)
    content = path.read_bytes()
    for damaged in (content[:-10] + bytes(10), content[: len(content) // 2]):
        path.write_bytes(damaged)
        with pytest.raises(Refusal, match="weights.npz: damaged; it is not what was written"):
            run.model()
