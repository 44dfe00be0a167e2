"""Building a recipe's model for its data."""

import os
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf import files, recipes
from dawnbench_tf.clock import Clock
from dawnbench_tf.data import dataset
from dawnbench_tf.data.dataset import Placement
from dawnbench_tf.data.images import tested
from dawnbench_tf.data.placement import Waits
from dawnbench_tf.recipe.options import RunOptions
from dawnbench_tf.refusals import Refusal
from dawnbench_tf.training import fitting, session, strategies
from dawnbench_tf.tta import TimeToAccuracy

FIXTURES = Path(__file__).parents[1] / "fixtures"


def build(model, data_format):
    recipe = replace(recipes.get("digits/resnet8"), model=model, synthetic="decoded")
    data = dataset.open(recipe, placement=Placement(tf.distribute.get_strategy(), data_format))
    images = tested.prepare(data.splits.train, recipe, data_format, np.arange(1000))
    return fitting.build(data), images


@pytest.mark.parametrize("data_format", ["NHWC", pytest.param("NCHW", marks=pytest.mark.long)])
def test_whitening_takes_the_statistics_of_the_data(data_format):
    model, images = build("resnet9_whitened", data_format)
    whitening = model.get_layer("whitening")
    outputs = np.asarray(whitening(images))
    outputs = outputs if data_format == "NHWC" else outputs.transpose(0, 2, 3, 1)
    inner = outputs[:, 1:-1, 1:-1].reshape(-1, 27)  # patches without padding
    covariance = np.cov(inner.T)
    assert 0.9 < np.linalg.eigvalsh(covariance).max() <= 1  # identity: it would be far over 1
    assert np.abs(covariance - np.diag(np.diag(covariance))).max() < 0.01


def count_traces(model):
    """Returns the batches for which a model's step is traced from now on."""
    step, traces = model.train_step, []
    model.train_step = lambda batch: traces.append(batch) or step(batch)
    return traces


def test_several_steps_are_traced_once_and_are_those_of_keras_s_loop():
    """7 steps in calls of 3: the first call of ours has one, the last what is left."""
    recipe = recipes.get("digits/resnet8", train_examples=28, batch_size=4, image_sizes=(8,))
    weights = []
    for own in (True, False):
        data = dataset.open(recipe)
        model = fitting.build(data)
        model.steps_per_execution = 3
        traces = count_traces(model)
        timer, sizes = TimeToAccuracy(1, "f1", evaluate=lambda: {"f1": 0}), []
        if not own:
            del model.make_train_function  # leaves tf-keras's own

        def note(batch, logs, model=model, sizes=sizes):
            sizes.append(int(model._steps_per_execution))

        spy = tf.keras.callbacks.LambdaCallback(on_batch_begin=note)
        callbacks = [timer, fitting.Calls(timer)] * own + [spy]
        model.fit(data.training_batches(), steps_per_epoch=7, verbose=0, callbacks=callbacks)
        assert sizes == ([1, 2, 3, 1] if own else [3, 3, 1])
        assert len(traces) == (1 if own else 2) and int(model.optimizer.iterations) == 7
        weights.append(model.get_weights())
    for ours, expected in zip(*weights, strict=True):
        np.testing.assert_array_equal(ours, expected)


def test_no_call_goes_past_an_evaluation_inside_an_epoch():
    """A quarter of 7 steps is 1.75: evaluations are due after 2, 4, 6 and 7 steps."""
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(1,))])
    model.compile("sgd", "mse", steps_per_execution=5)
    timer = TimeToAccuracy(1, "f1", evaluate=lambda: {"f1": 0}, every=0.25, first=0.5)
    callbacks = [timer, fitting.Calls(timer)]
    model.fit(np.ones([7, 1]), np.ones(7), 1, epochs=2, verbose=0, callbacks=callbacks)
    steps = [7 * row["epoch"] for row in timer.rows]
    assert steps == pytest.approx([4, 6, 7, 9, 11, 13, 14], abs=1e-4)


def test_a_model_for_larger_images_takes_the_data_s():
    model, images = build("resnet18_v1", "NCHW")
    assert model.input_shape == (None, 3, 32, 32) == (None, *images.shape[1:])
    assert model.output_shape == (None, 10)


def test_a_tensorflow_without_xla_for_the_device_is_refused(monkeypatch):
    """tensorflow-tpu has no XLA for a CPU. Without --jit_compile, `build` ignores it."""

    error = tf.errors.NotFoundError(None, None, "no transfer manager for platform Host")
    monkeypatch.setattr(fitting, "_by_xla", Mock(side_effect=error))
    data = dataset.open(recipes.get("digits/resnet8"))
    fitting.build(data)
    with pytest.raises(Refusal, match="--jit_compile=true: .* no transfer manager"):
        fitting.build(data, jit_compile=True)


def test_an_average_that_would_never_change_is_refused():
    data = dataset.open(recipes.get("digits/resnet8", average=0.9, average_every=631))
    with pytest.raises(Refusal, match="--average_every=631: should be at most the 630 steps"):
        fitting.build(data)


def test_xla_compiles_what_it_saves_on_one_gpu(monkeypatch):
    cases = {  # seconds on an H200 without XLA: 4,015 images/s, 8.8 ms, 316 questions/s; XLA
        "imagenet/resnet50_v1_5": (1_281_167 * 90 / 4_015, True),
        "cifar10/resnet20_tf": (181 * 390 * 0.0088, True),
        "cifar10/airbench94_muon": (2.5, False),
        "squad/bert_base": (2 * 87_599 / 316, False),  # six lengths of texts
        "squad/bert_large": (None, True),
        "imagenet/amoebanet_d": (None, False),  # XLA stopped the process
        "squad/drqa": (None, False),
    }
    for name, (measured, pays) in cases.items():
        recipe = recipes.get(name)
        steps = [recipe.task_row.train_examples // recipe.batch_size] * 1000
        placement = SimpleNamespace(strategy=tf.distribute.get_strategy())
        data = SimpleNamespace(recipe=recipe, placement=placement, epoch_steps=steps)
        with monkeypatch.context() as patch:
            assert not fitting.xla_pays(data)  # on a CPU
            patch.setattr(tf.config, "list_logical_devices", lambda kind: [kind])
            assert fitting.xla_pays(data) == pays, name
            placement.strategy = SimpleNamespace(num_replicas_in_sync=2)
            assert not fitting.xla_pays(data)
        if measured:
            assert 0.7 < fitting.gpu_seconds(recipe, steps) / measured < 1.4, name


def test_a_run_goes_on_as_xla_began_it(monkeypatch, tmp_path):
    recipe, chosen, build = recipes.get("digits/resnet8", seed=5), [], fitting.build
    monkeypatch.setattr(strategies, "is_one_gpu", lambda strategy: True)
    monkeypatch.delenv("TF_CUDNN_USE_AUTOTUNE", raising=False)
    with fitting.freeing_graphs():
        model = build(dataset.open(recipe))
        assert os.environ["TF_CUDNN_USE_AUTOTUNE"] == "0"  # the digits train for seconds
    assert "TF_CUDNN_USE_AUTOTUNE" not in os.environ
    monkeypatch.setattr(fitting, "build", lambda *arguments: chosen.append(arguments[-1]) or model)

    def open_run(folder):
        with session.open_session(recipe, RunOptions(), folder, Clock()) as opened:
            opened.folder.release()

    open_run(tmp_path / "new")
    old = shutil.copytree(FIXTURES / "digits_run_0_3_0", tmp_path / "old")
    open_run(old)
    state = old / "checkpoint-3/state.json"
    files.write_json(state, {**files.read_json(state), "jitCompile": True})
    open_run(old)
    assert chosen == [None, False, True]  # by itself, as an earlier release did, as it began


def test_a_step_of_xla_is_compiled_once_for_calls_of_several_steps():
    """The calls have 1, 10 and 2 steps. The loop runs the 10 steps in one iteration."""
    examples = np.random.default_rng(0).normal(size=(52, 3)).astype("f")
    batches = tf.data.Dataset.from_tensor_slices((examples, examples[:, :2])).batch(4, True)
    weights = []
    for own in (True, False):
        tf.keras.utils.set_random_seed(0)
        model = tf.keras.Sequential([tf.keras.layers.Dense(2, input_shape=(3,))])
        optimizer = tf.keras.optimizers.SGD(0.1)
        model.compile(optimizer, "mse", jit_compile=own, steps_per_execution=11 if own else 1)
        optimizer.build(model.trainable_variables)
        timer = TimeToAccuracy(1, "f1", evaluate=lambda: {"f1": 0})
        if own:
            traces = count_traces(model)
            model.make_train_function = partial(fitting._make_train_function, model, Waits())
            model.fit(batches, verbose=0, callbacks=[timer, fitting.Calls(timer)])
            assert len(traces) == 1 and int(model._train_counter) == timer.step == 13
        else:
            for batch in batches:
                model.train_on_batch(*batch)
        weights.append(model.get_weights())
    for ours, expected in zip(*weights, strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-6)


def test_a_batch_that_ghost_groups_do_not_divide_is_refused_with_the_flag():
    recipe = recipes.get("digits/resnet8", model="resnet9_mish", batch_size=40, synthetic="decoded")
    with pytest.raises(Refusal, match="^--batch_size=40: 40 on a device .* resnet9_mish's groups"):
        fitting.build(dataset.open(recipe))
    fitting.build(dataset.open(recipe.with_values(hardest=32)))  # which are those it trains on


def test_an_error_of_the_user_s_own_code_is_no_fault_of_the_run_s_folder_or_workers(tmp_path):
    def meets(error):
        strategy = tf.distribute.get_strategy()
        with fitting.refusing(recipes.get("digits/resnet8"), strategy, tmp_path):
            raise error

    for error in (
        ConnectionRefusedError(111, "Connection refused"),
        FileNotFoundError(2, "No such file", b"/nowhere/metrics.csv"),
        OSError(5, "Input/output error", "/data/x.jpg"),
        tf.errors.UnavailableError(None, None, "no bucket"),
    ):
        with pytest.raises(type(error)):
            meets(error)
    for error in (OSError(28, "No space"), PermissionError(13, "No space", f"{tmp_path}/rows.tsv")):
        with pytest.raises(Refusal, match=rf"^{tmp_path}.*: can't be written \(No space\)"):
            meets(error)
