"""The choice of the fastest runtime that keeps the accuracy."""

from collections import Counter
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from dawnbench_tf import recipes
from dawnbench_tf.data import dataset
from dawnbench_tf.data.images import splits
from dawnbench_tf.inference import latency, runtime_choice, runtimes
from dawnbench_tf.inference.runtime_choice import Candidate
from dawnbench_tf.inference.serving import Runtime
from dawnbench_tf.refusals import Refusal
from dawnbench_tf.tasks import TASKS


def test_the_accuracy_decides_before_the_speed():
    runtime = Runtime(lambda example: example[0], 1)
    accurate = Candidate("onnx", "float32", runtime, p50=2.0, score=94.0)
    candidates = [
        Candidate("litert", "int8", runtime, p50=1.0, score=93.7),
        accurate,
        Candidate("keras", "float32", runtime, p50=50.0, score=94.1),
        Candidate("xla", "float32", None, "not here"),
    ]
    assert runtime_choice.select_accurate(candidates, TASKS["cifar10"])[0] is accurate
    chosen = runtime_choice.select_accurate(candidates, TASKS["cifar10"], accurate.precision)
    assert {candidate.precision for candidate in chosen} == {accurate.precision}
    assert len(runtime_choice.select_accurate(candidates, TASKS["cifar10"])) == 2
    line = "--precision=float64: no runtime keeps Keras's top1Accuracy 94.1 on the sample"
    with pytest.raises(Refusal, match=line):
        runtime_choice.select_accurate(candidates, TASKS["cifar10"], "float64")


EXAMPLES = [(number,) for number in range(30)]


def compared(monkeypatch, examples=EXAMPLES, **builds):
    """Returns the candidates of `compare` for runtimes built by the given functions."""
    names = [(name, "float32") for name in builds]
    monkeypatch.setattr(runtime_choice, "_candidate_names", lambda _: names)
    functions = {name: lambda *_, build=build: build() for name, build in builds.items()}
    monkeypatch.setattr(runtimes, "import_module", lambda _: SimpleNamespace(**functions))
    scored = SimpleNamespace(join=np.concatenate, score=lambda answers: {"top1Accuracy": 99.0})
    recipe = SimpleNamespace(task_row=TASKS["digits"])
    serving = SimpleNamespace(
        served=SimpleNamespace(examples=examples, fixed_shape=True),
        data=SimpleNamespace(sample=lambda: (slice(30), scored), recipe=recipe),
    )
    return runtime_choice.compare(serving, "", 1)


def test_what_is_100_times_slower_is_timed_in_one_round(monkeypatch):
    times, calls = {"keras": 200_000, "litert": 1_000, "onnx": 99_000}, Counter()

    def call(name, example):
        calls[name] += 1
        return np.ones((1, 2))

    def now():
        return sum(count * times[name] for name, count in calls.items())

    monkeypatch.setattr(latency.time, "perf_counter_ns", now)
    builds = {name: partial(Runtime, partial(call, name), 1) for name in times}
    candidates = compared(monkeypatch, **builds)
    assert {c.name: c.rounds for c in candidates} == {"litert": 3, "onnx": 3, "keras": 1}
    assert calls["onnx"] > 2 * calls["keras"]
    text = runtime_choice.format_table(candidates, candidates[0], TASKS["digits"])
    assert text.count("timed in 1 of 3 rounds: too slow") == 1


def answers(fails_at=None):
    def call(example):
        if example == (fails_at,):
            raise RuntimeError("no such shape")
        return np.ones((1, 2))

    return Runtime(call, 1)


def absent():
    raise ImportError("libonnx.so.1: cannot open shared object file")


def test_runtimes_that_fail_are_told_and_the_others_timed(monkeypatch):
    late = partial(answers, 25)  # not in the first call, nor while it warms up
    builds = {"keras": answers, "litert": late, "onnx": absent, "function": answers}
    candidates = compared(monkeypatch, **builds)
    reasons = {c.name: c.reason for c in candidates if not c.runtime}
    assert reasons == {
        "litert": "can't run the model (RuntimeError: no such shape)",
        "onnx": "can't run the model (ImportError: libonnx.so.1: cannot open shared object file)",
    }
    assert {c.name: c.rounds for c in candidates if c.runtime} == {"keras": 3, "function": 3}


def test_without_keras_there_is_nothing_to_compare_with(monkeypatch):
    with pytest.raises(Refusal, match="--runtime=keras: can't run the model .RuntimeError"):
        compared(monkeypatch, keras=partial(answers, 25), litert=answers)


def test_the_table_marks_the_choice_and_says_what_was_not_tried():
    runtime = Runtime(lambda example: example[0], 2_000_000)
    chosen = Candidate("keras", "float32", runtime, p50=0.05, p99=0.06, score=94.1, agreement=1)
    candidates = [chosen, Candidate("xla", "float32", None, "not here")]
    text = runtime_choice.format_table(candidates, chosen, TASKS["cifar10"])
    head, first, second = text.splitlines()
    assert first.split() == ["*", *"keras float32 50.000 60.000 94.1 100.0% 2.00 CPU".split()]
    assert second == "xla, float32: not tried: not here"
    assert "top1Accuracy" in head


def test_a_damaged_example_is_named_and_no_runtime_is_blamed(monkeypatch):
    class Examples:
        def __len__(self):
            return 30

        def __getitem__(self, index):
            if isinstance(index, slice):
                return self
            if index:
                raise Refusal("--data_dir: val/rose/1.jpg: is damaged")
            return (0,)

    with pytest.raises(Refusal, match="^--data_dir: val/rose/1.jpg: is damaged$"):
        compared(monkeypatch, Examples(), keras=answers)


def test_images_of_a_sample_and_for_calibration_are_evenly_spaced():
    """Files may be in the order of their classes."""
    recipe = recipes.get("digits/resnet8", train_examples=1000)
    data = dataset.open(recipe)
    labels = data.splits.test.labels
    chosen, sampled = data.sample()
    assert np.array_equal(sampled.splits.test.labels, labels[chosen]) and len(labels[chosen]) == 200
    assert np.array_equal(sampled.examples()[1][0], data.examples()[chosen][1][0])
    ordered = splits.in_memory(np.zeros((1000, 1, 1, 3), np.uint8), np.repeat(np.arange(10), 100))
    for count in (300, 600, 1000, 2000):
        chosen, part = ordered.spaced(count)
        assert np.bincount(part.labels).tolist() == [min(count, 1000) / 10] * 10
        assert np.array_equal(part.labels, ordered.labels[chosen])
    calibration = data.training_as_test(100).splits.test
    assert np.array_equal(calibration.labels, data.splits.train.labels[::10])


def test_if_none_reaches_the_threshold_the_best_score_is_reported_the_fastest_of_several(
    monkeypatch,
):
    scores = {"a": 90.0, "b": 92.0, "c": 92.0}
    data = SimpleNamespace(
        recipe=SimpleNamespace(task_row=TASKS["digits"]),
        join=lambda outputs: outputs[0],
        score=lambda answers: {"top1Accuracy": scores[answers]},
    )
    candidates = [(name, "int8", Runtime(lambda _, n=name: n, 1)) for name in scores]
    name, *_, score = runtime_choice.time_until_reached(data, candidates, [(0,)] * 30, 1, 1.0)
    assert (name, score) == ("b", 92.0)
    # What float32 misses, others reach by rounding at best.
    candidates[0] = ("a", "float32", candidates[0][2])
    name, *_ = runtime_choice.time_until_reached(data, candidates, [(0,)] * 30, 1, 1.0)
    assert name == "a"
