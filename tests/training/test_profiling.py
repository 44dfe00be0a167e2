"""Profiles: operations and calls of a known step, a GPU's streams, and the flag's table."""

import re

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from dawnbench_tf import recipes, runs, terminal
from dawnbench_tf.recipe.options import RunOptions
from dawnbench_tf.train import train
from dawnbench_tf.training import profiling, speed_test


def test_a_dense_layer_s_step_has_two_products(tmp_path):
    model = tf.keras.Sequential([tf.keras.layers.Dense(3, use_bias=False, input_shape=(5,))])
    model.compile("sgd", "mse", steps_per_execution=4)
    profiler = profiling.Profiler(tmp_path, (6, 9))
    images, labels = np.ones([64, 5], np.float32), np.ones([64, 3], np.float32)
    model.fit(images, labels, batch_size=4, verbose=0, callbacks=[profiler])
    profile = profiler.profile
    assert profile.steps == 4  # 9 to 12: calls are whole
    products = sum(row.calls for row in profile.rows if row.operation.endswith("MatMul"))
    assert products == 2  # of the outputs, and of the weights' gradient
    assert profile.device == "CPU" and 0 < profile.step_ms < 1000
    assert profile.busy_ms == pytest.approx(sum(row.milliseconds for row in profile.rows))
    assert profile.first == 9 and "transposes" not in profile.kinds
    assert 0 < profile.input_share < 1


def test_steps_that_are_not_there_are_said(monkeypatch, tmp_path):
    lines = []
    monkeypatch.setattr(terminal, "say", lambda line, *_, **__: lines.append(line))
    options = RunOptions(max_steps=4, profile_steps=(1, 9), peak_tflops=1.0)
    recipe = recipes.get("digits/resnet8", crop_size=8)
    assert speed_test.measure(recipe, options).profile.steps == 3  # the first compiles
    assert lines[-1].startswith("profile of steps 2 to 4: ")
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    data = np.ones([2, 1]), np.ones(2)
    model.fit(*data, verbose=0, callbacks=[profiling.Profiler(tmp_path, (1, 1))])
    reason = "no call but the first, which compiles, began at step 1 or later"
    assert lines[-1] == f"no steps were profiled: {reason}"
    profiler = profiling.Profiler(tmp_path, (2, 5))
    stops = tf.keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, _: 1 / (1 - batch))
    with pytest.raises(ZeroDivisionError):
        model.fit(*data, batch_size=1, verbose=0, callbacks=[stops, profiler])
    model.fit(*data, batch_size=1, verbose=0, callbacks=[profiler])  # the next one profiles
    assert (profiler.profile.first, profiler.profile.steps) == (3, 1)  # one was done before


def test_a_training_that_ends_inside_an_epoch_ends_the_profile(monkeypatch, tmp_path):
    lines = []
    monkeypatch.setattr(terminal, "say", lambda line, *_, **__: lines.append(line))
    recipe = recipes.get("digits/resnet8", crop_size=8, epochs=1.2)  # 26 steps
    for steps, every, words in (
        ((4, 18), 0.25, "profile of steps 4 to 6: "),  # an evaluation follows
        ((22, 60), 1, "profile of steps 22 to 26: "),
        ((30, 40), 1, "no steps were profiled: training ended at step 26, before 30"),
    ):
        options = RunOptions(profile_steps=steps, peak_tflops=1.0, steps_per_execution=3)
        train(recipe.with_values(eval_every=every), options, tmp_path / str(steps[0]))
        assert [line for line in lines if line.startswith(words)], lines
        assert runs.read(tmp_path / str(steps[0])).options.profile_steps == ()  # not recorded


STREAMS = (  # (operation, kernel, begin, duration) in ms
    [
        ("net/bn/FusedBatchNormV3:FusedBatchNormV3", "SwapDimension1And2<bfloat16>", 0, 2),
        ("net/bn/FusedBatchNormV3:FusedBatchNormV3", "cudnn::bn_fw_tr", 2, 4),
        ("net/cast/Cast:Cast", "Cast_bf16", 6, 1),
    ],
    [("", "MemcpyH2D", 5, 4), ("fusion.12", "input_reduce_fusion_12", 12, 1)],
)


def test_a_gpu_s_kernels_are_summed_by_operation_and_its_busy_time_is_a_union(tmp_path):
    space = xplane_pb2.XSpace()
    space.planes.add(name="/host:CPU").lines.add(name="python")
    plane = space.planes.add(name="/device:GPU:0")
    plane.stat_metadata[1].name = "tf_op"
    for number, events in enumerate(STREAMS):
        line = plane.lines.add(name=f"Stream #{number}", timestamp_ns=5)
        for operation, kernel, begin, duration in events:
            key = len(plane.event_metadata) + 1
            plane.event_metadata[key].name = kernel
            moments = {"offset_ps": begin * 10**9, "duration_ps": duration * 10**9}
            event = line.events.add(metadata_id=key, **moments)
            event.stats.add(metadata_id=1, str_value=operation)
    (tmp_path / "a.xplane.pb").write_bytes(space.SerializeToString())
    profile = profiling.read(tmp_path, steps=2, seconds=0.02)
    assert [(row.operation, row.milliseconds, row.calls) for row in profile.rows] == [
        ("FusedBatchNormV3", 3, 1),
        ("MemcpyH2D", 2, 0.5),
        ("Cast", 0.5, 0.5),
        ("fusion", 0.5, 0.5),
    ]
    assert (profile.device, profile.step_ms, profile.busy_ms) == ("GPU", 10, 5)  # 0 to 9, 12 to 13
    shares = {kind: share * 12 for kind, share in profile.kinds.items()}
    assert shares == pytest.approx({"batch normalization": 6, "casts": 1, "transposes": 2})
    first, head, row, *_, kinds, wait = str(profile).splitlines()
    assert first == "profile of steps 1 to 2: 10 ms a step; GPU busy for 5 ms"
    assert re.sub(" +", " ", row) == "FusedBatchNormV3 3.000 50.0% 1.0"
    assert kinds == "batch normalization 50.0%, casts 8.3%, transposes 16.7%"
    assert wait == "host waited for input: 0.0% of the step"
    assert max(map(len, str(profile).splitlines())) <= 79
    with pytest.raises(FileNotFoundError, match="holds no profile"):
        profiling.read(tmp_path / "none", 1, 1.0)
