"""Timed steps of recipes, on small networks and few examples."""

import subprocess
import sys
from dataclasses import replace

import pytest

from dawnbench_tf import recipes
from dawnbench_tf.clock import Clock
from dawnbench_tf.data.images import synthetic
from dawnbench_tf.estimates import sampling
from dawnbench_tf.options import RunOptions

OPTIONS = RunOptions(peak_tflops=1.0)


def test_steps_and_an_evaluation_are_timed_in_their_time(monkeypatch):
    monkeypatch.setattr(sampling, "MOST_SECONDS", 0.5)
    reports = []
    clock = Clock({"import": 3.0})
    sample = sampling.sample(recipes.get("digits/resnet8"), OPTIONS, 60, reports.append, clock)
    (phase,) = sample.phases
    assert sample.phases[0].steps_per_epoch == 21 and sample.start["import"] == 3.0
    assert 0 < sum(steps for _, steps in phase.laps) < 30 * 21 and phase.end == 30
    assert phase.flops_per_example == 6 * 12_239_488 and not sample.generated
    assert {"load", "build", "compile"} < set(sample.start) and sample.first_steps <= 10
    assert reports[0].evaluation_seconds is None and sample.evaluation_seconds > 0


def test_each_size_of_jpegs_is_timed_on_generated_ones(monkeypatch):
    monkeypatch.setitem(synthetic.POOL, "jpeg", 4)
    recipe = recipes.get(
        "imagenette/resnet18",
        image_sizes=(32, 64),
        batch_size=2,
        later_batch_sizes=(3,),
        batch_size_epochs=(10,),
    )
    recipe = replace(recipe, precision="float32")
    sample = sampling.sample(recipe, OPTIONS, 0.1)
    assert [(p.side, p.begin, p.end) for p in sample.phases] == [(32, 0, 10), (64, 10, 16)]
    assert [(p.batch_size, p.steps_per_epoch) for p in sample.phases] == [(2, 4734), (3, 3156)]
    assert sample.generated and sample.evaluation_seconds is None
    small, large = (phase.flops_per_example for phase in sample.phases)
    assert large / small == pytest.approx(4, rel=0.01)


@pytest.mark.parametrize(
    ("name", "data_dir", "synthetic"),
    [
        ("digits/resnet8", "", None),
        ("qa_mini/bidaf", "", None),
        ("cifar10/airbench94", "", "decoded"),
        ("cifar10/airbench94", "data", None),
        ("imagenette/resnet18", "", "jpeg"),
    ],
)
def test_examples_are_generated_where_there_are_none(name, data_dir, synthetic):
    recipe = sampling.without_files(recipes.get(name), RunOptions(data_dir=data_dir))
    assert recipe.synthetic == synthetic


def test_a_sample_s_process_ends_with_the_one_that_process(tmp_path):
    folder = tmp_path / "dawnbench-estimate-x"
    folder.mkdir()
    program = (
        "import pathlib; from dawnbench_tf.estimates import process; "
        f"process._end_with_parent(pathlib.Path({str(folder)!r}))"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE)
    process.stdin.close()  # as when the parent is killed
    assert process.wait(60) == 1 and not folder.exists()
