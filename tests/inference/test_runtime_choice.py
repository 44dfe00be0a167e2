"""Which runtime is taken: the fastest that keeps the accuracy."""

from dawnbench_tf.inference import runtime_choice
from dawnbench_tf.inference.runtime_choice import Candidate
from dawnbench_tf.inference.served import Runtime
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
    assert runtime_choice.best(candidates, TASKS["cifar10"])[0] is accurate


def test_the_table_marks_the_choice_and_says_what_was_not_tried():
    runtime = Runtime(lambda example: example[0], 2_000_000)
    chosen = Candidate("keras", "float32", runtime, p50=0.05, p99=0.06, score=94.1, agreement=1)
    candidates = [chosen, Candidate("xla", "float32", None, "not here")]
    head, first, second = runtime_choice.table(candidates, chosen, TASKS["cifar10"]).splitlines()
    assert first.split() == ["*", *"keras float32 50.000 60.000 94.1 100.0% 2.00".split()]
    assert second.split(maxsplit=2) == ["xla", "float32", "not tried: not here"]
    assert "top1Accuracy" in head
