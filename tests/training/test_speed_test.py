"""Timed steps of recipes, on small networks and few examples."""

from dataclasses import replace
from unittest.mock import Mock

import pytest
import tensorflow as tf

from dawnbench_tf import recipes
from dawnbench_tf.clock import Clock
from dawnbench_tf.data.images import synthetic
from dawnbench_tf.recipe.options import RunOptions
from dawnbench_tf.refusals import Refusal
from dawnbench_tf.training import fitting, speed_test, utilization

OPTIONS = RunOptions(peak_tflops=1.0)


def test_steps_and_an_evaluation_are_timed_in_their_time(monkeypatch):
    monkeypatch.setattr(speed_test, "MOST_SECONDS", 0.5)
    agree, ticks, reports = Mock(), [], []
    monkeypatch.setattr(fitting, "check_agreement", agree)
    monkeypatch.setattr(utilization.Utilization, "tick", lambda meter: ticks.append(meter))
    clock, recipe = Clock({"import": 3.0}), recipes.get("digits/resnet8")
    test = speed_test.measure(recipe, OPTIONS, seconds=60, clock=clock, report=reports.append)
    (phase,) = test.phases
    assert phase.steps_per_epoch == 21 and test.start["import"] == 3.0
    assert 0 < sum(steps for _, steps in phase.laps) < 30 * 21 and phase.end == 30
    assert phase.flops_per_example == 6 * 12_239_488 and not test.recipe.synthetic
    assert {"load", "build", "compile"} < set(test.start) and test.phases[0].first[1] <= 10
    assert reports[0].evaluation_seconds is None and test.evaluation_seconds > 0
    # Before and after it loads the data; before and after `fit`, for counters that overflow.
    assert [len(call.args) for call in agree.call_args_list] == [3, 5] and len(ticks) >= 2


def test_each_size_of_jpegs_is_timed_on_generated_ones(monkeypatch):
    monkeypatch.setitem(synthetic.POOL, "jpeg", 4)
    sizes = {"image_sizes": (32, 64), "later_batch_sizes": (3,), "batch_size_epochs": (10,)}
    recipe = recipes.get("imagenette/resnet18", **sizes, batch_size=2, precision="float32")
    test = speed_test.measure(recipe, OPTIONS, seconds=0.1)
    phases = test.phases
    assert [(p.side, p.begin, p.end) for p in phases] == [(32, 0, 10), (64, 10, 16)]
    assert [(p.batch_size, p.steps_per_epoch) for p in phases] == [(2, 4734), (3, 3156)]
    assert test.recipe.synthetic and test.evaluation_seconds is None
    small, large = (phase.flops_per_example for phase in phases)
    assert large / small == pytest.approx(4, rel=0.01)


@pytest.mark.parametrize(
    ("name", "data_dir", "synthetic"),
    [
        ("digits/resnet8", "", None),
        ("cifar10/airbench94", "", "decoded"),
        ("cifar10/airbench94", "data", None),
        ("imagenette/resnet18", "", "jpeg"),
    ],
)
def test_examples_are_generated_where_there_are_none(name, data_dir, synthetic):
    recipe = speed_test.without_files(recipes.get(name), RunOptions(data_dir=data_dir))
    assert recipe.synthetic == synthetic


def test_a_batch_that_does_not_fit_is_refused_with_one_that_does(monkeypatch):
    build = fitting.build

    def small_device(data, *args, **kwargs):
        """Returns a model on a device whose memory has room for 32 examples."""
        model = build(data, *args, **kwargs)
        if data.recipe.batch_size > 32:
            error = tf.errors.ResourceExhaustedError(None, None, "OOM when allocating")
            monkeypatch.setattr(model, "fit", Mock(side_effect=error))
        return model

    monkeypatch.setattr(fitting, "build", small_device)
    text = "--batch_size=64: does not fit into the device's memory; 32 does fit"
    with pytest.raises(Refusal, match=text):
        speed_test.measure("digits/resnet8", replace(OPTIONS, max_steps=2))
    with pytest.raises(Refusal, match="--max_steps=0: should be at least 1, unless `seconds`"):
        speed_test.measure("digits/resnet8", OPTIONS)
    with pytest.raises(Refusal, match="; lower it; dawnbench train --max_steps=20 finds one"):
        speed_test.measure("digits/resnet8", OPTIONS, seconds=20)
