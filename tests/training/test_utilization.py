"""Utilization, compared with the catalogue's counts; a counter that overflows; a slow pipeline."""

import sys
import time
import types

import pytest
import tensorflow as tf

from dawnbench_tf import models, recipes, terminal
from dawnbench_tf.data.placement import Waits
from dawnbench_tf.recipe.options import RunOptions
from dawnbench_tf.training import utilization
from dawnbench_tf.tta import TimeToAccuracy


@pytest.mark.parametrize("name", ["resnet8_v1_pad", "airbench94"])
def test_operations_are_twice_the_catalogue_s_multiply_adds(name):
    model = models.build(name)
    assert utilization.forward_flops(model) == 2 * models.get(name).multiply_adds
    assert utilization.step_flops(model, 8) == 3 * 2 * models.get(name).multiply_adds
    model.layers[1].trainable = False  # has no backward pass, as far as it is frozen
    assert utilization.step_flops(model, 8) is None


def test_a_network_without_a_fixed_shape_or_with_a_loop_says_nothing():
    any_size = models.build("resnet18_v1", input_shape=(None, None, 3))
    looped = tf.keras.Sequential([tf.keras.layers.LSTM(4, input_shape=(7, 3))])
    assert utilization.forward_flops(any_size) is utilization.forward_flops(looped) is None


def test_the_operations_of_a_training_are_those_of_its_steps():
    changes = {"later_batch_sizes": (128,), "batch_size_epochs": (2,)}
    changes |= {"image_sizes": (16, 32), "image_size_epochs": (3,), "epochs": 4.5}
    recipe = recipes.get("digits/resnet8", **changes)
    each = 3 * 2 * models.get(recipe.model).multiply_adds
    wanted = each * (64 * 42 / 4 + 128 * 11 / 4 + 128 * 17)  # a quarter: of 16 pixels
    assert utilization.training_flops(recipe, [21, 21, 11]) == wanted
    long = recipes.get("digits/resnet8", epochs=1e6)
    assert utilization.training_flops(long, [21]) == each * 64 * 21e6


def test_the_measured_peak_is_possible():
    peak, operation = utilization.measure_peak("float32")
    assert operation in ("a matrix product", "a convolution")
    assert 1e9 < peak < 1e16


def test_a_peak_is_the_operations_of_its_fastest_call(monkeypatch):
    counts = []

    def rate(operation, flops):
        graph = tf.function(operation, autograph=False).get_concrete_function().graph
        builder = tf.compat.v1.profiler.ProfileOptionBuilder
        options = builder(builder.float_operation()).with_empty_output().build()
        with terminal.silent():
            counted = tf.compat.v1.profiler.profile(graph, options=options, cmd="scope")
        counts.append((flops, counted.total_float_ops))
        return flops

    fastest = utilization._rate
    monkeypatch.setattr(utilization, "_rate", rate)
    utilization.measure_peak("float32")
    assert len(counts) == 2 and all(ours == theirs for ours, theirs in counts)
    moments = iter([10, 10.3, 10.32, 10.35, 10.6])  # calls of 0.3, 0.02, 0.03 and 0.25 s
    monkeypatch.setattr(utilization, "time", types.SimpleNamespace(monotonic=lambda: next(moments)))
    assert fastest(lambda: tf.ones([2]), 6) == pytest.approx(6 / 0.02)


def counter(folder, socket, microjoules, highest=1_000_000, name="package-0"):
    path = folder / f"intel-rapl:{socket}"
    path.mkdir(exist_ok=True)
    (path / "name").write_text(f"{name}\n")
    (path / "energy_uj").write_text(f"{microjoules}\n")
    (path / "max_energy_range_uj").write_text(f"{highest}\n")
    return path


def test_energy_of_all_sockets_adds_up_over_overflows(tmp_path):
    counter(tmp_path, 0, 900_000)
    counter(tmp_path, 1, 0)
    counters = {"dram": "0:1", "core": "0:0", "psys": "2"}  # the last two have the package's joules
    for name, socket in counters.items():
        counter(tmp_path, socket, 0, name=name)
    used = utilization.Energy(root=tmp_path)
    counter(tmp_path, 0, 100_000)
    used.tick()
    counter(tmp_path, 0, 300_000)
    counter(tmp_path, 1, 500_000)
    for name, socket in counters.items():
        counter(tmp_path, socket, 40_000, name=name)
    used.tick()
    assert used.joules == pytest.approx(0.2 + 0.2 + 0.5 + 0.04) and used.sources == ["RAPL"]
    assert utilization.Energy(gpus=1, root=tmp_path).joules is None  # the sockets' is not all


def test_where_no_counter_can_be_read_energy_is_not_known(tmp_path):
    path = counter(tmp_path, 0, 5)
    (path / "energy_uj").write_text("denied")
    used = utilization.Energy(root=tmp_path)
    used.tick()
    assert used.joules is None and used.sources == []


def test_waits_are_what_a_slow_pipeline_takes_and_not_what_its_reader_does():
    """`next(batches, 3)` adds three times the seconds of its own wait."""
    waits = Waits()

    def slow(number):
        return tf.numpy_function(lambda n: (time.sleep(0.05), n)[1], [number], tf.int64)

    @tf.function
    def sums(batches):
        return [waits.next(batches), waits.next(batches, 3) + next(batches) + next(batches)]

    batches = iter(tf.data.Dataset.range(5).map(slow))
    time.sleep(0.2)
    assert [int(total) for total in sums(batches)] == [0, 6]
    assert 0.18 <= waits.seconds < 0.5


def test_the_line_says_what_is_known_and_no_more():
    facts = {
        "flopsPerSecond": 4.2e10,
        "shareOfPeak": 0.31,
        "peakFrom": "a convolution",
        "inputWaitShare": 0.002,
        "communicationShare": None,
        "processGiB": 0.5,
        "energyJoules": 1234.5,
        "energyFrom": ["RAPL"],
    }
    assert utilization.format_line(facts) == (
        "used: 42 GFLOP/s, 31.0% of the peak of a convolution; waited for input 0.2%; "
        "memory 0.50 GiB; energy 1,234 J (RAPL)"
    )
    assert utilization.format_line({}) == "used: not recorded"
    large = {"flopsPerSecond": 1.486e14, "energyJoules": 15340.0, "energyFrom": ["NVML"]}
    assert utilization.format_line(large) == "used: 148.6 TFLOP/s; energy 15,340 J (NVML)"


def nvml(monkeypatch, millijoules, names=("H100",)):
    """Puts an NVML in place whose GPUs have these names and energy counters."""
    counters = [iter(values) for values in millijoules]  # then it is lost

    stub = types.SimpleNamespace(
        nvmlInit=lambda: None,
        nvmlDeviceGetCount=lambda: len(counters),
        nvmlDeviceGetHandleByIndex=lambda number: number,
        nvmlDeviceGetName=lambda handle: (names * len(counters))[handle],
        nvmlDeviceGetUUID=lambda handle: f"GPU-8f{handle}-4e1b",
        nvmlDeviceGetTotalEnergyConsumption=lambda handle: next(counters[handle]),
        nvmlDeviceGetMigMode=lambda handle: (int(names[0] == "A100 in MIG mode"), 0),
        NVMLError=StopIteration,
    )
    monkeypatch.setitem(sys.modules, "pynvml", stub)
    for name in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"):
        monkeypatch.delenv(name, raising=False)


def test_energy_of_gpus_is_nvml_s_where_it_is_installed(monkeypatch, tmp_path):
    nvml(monkeypatch, [[1_000, 5_000, 9_500]])
    used = utilization.Energy(gpus=1, root=tmp_path)
    used.tick()
    used.tick()
    assert used.joules == pytest.approx(8.5) and used.sources == ["NVML"]
    monkeypatch.setitem(sys.modules, "pynvml", None)  # not installed
    assert utilization.Energy(gpus=1, root=tmp_path).joules is None


@pytest.mark.parametrize(
    ("visible", "order", "names", "joules"),
    [
        ("2", None, ("H100",), 3),
        ("GPU-8f1", None, ("T4", "H100", "T4"), 2),
        ("1,0", "PCI_BUS_ID", ("T4", "H100", "T4"), 2),
        ("1", None, ("T4", "H100", "T4"), None),  # CUDA's fastest first
        ("-1", None, ("H100",), None),
        (None, None, ("A100 in MIG mode",), None),
    ],
)
def test_energy_is_of_the_gpus_shown(monkeypatch, tmp_path, visible, order, names, joules):
    nvml(monkeypatch, [[0, 1_000], [0, 2_000], [0, 3_000]], names)
    for name, value in (("CUDA_VISIBLE_DEVICES", visible), ("CUDA_DEVICE_ORDER", order)):
        if value:
            monkeypatch.setenv(name, value)
    used = utilization.Energy(gpus=1, root=tmp_path)
    used.tick()
    assert used.joules == joules


def test_an_error_of_nvml_ends_no_run(monkeypatch, tmp_path):
    nvml(monkeypatch, [[1_000, 3_000]])
    used = utilization.Energy(gpus=1, root=tmp_path)
    for _ in range(3):
        used.tick()
    assert used.joules == 2
    assert utilization.Energy(gpus=1, root=tmp_path).joules is None  # has no counter now


def test_the_memory_of_the_eleventh_gpu_is_read_by_its_own_name(monkeypatch):
    gpus = [types.SimpleNamespace(name=f"/device:GPU:{number}") for number in range(12)]
    used = {f"GPU:{number}": {"peak": number * 2**30} for number in range(12)}
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: gpus)
    monkeypatch.setattr(tf.config.experimental, "get_memory_info", used.__getitem__)
    assert utilization.memory()["deviceGiB"] == 11


def measured_run(monkeypatch, before, after, speed, earlier=0.0):
    """Returns the facts of a run whose peak is `before` and then `after` it, in GFLOP/s."""
    peaks = iter([(before * 1e9, "a convolution"), (after * 1e9, "a convolution")])
    forward = 10**9 / utilization.STEP_TO_FORWARD
    monkeypatch.setattr(utilization, "forward_flops", lambda model, side=0: forward)
    monkeypatch.setattr(utilization, "measure_peak", lambda precision: next(peaks))
    timer = TimeToAccuracy(98, "top1Accuracy")
    timer.examples_per_second = speed
    timer.clock.carry_on({"train": earlier})
    energy = types.SimpleNamespace(joules=5.0, sources=["RAPL"])
    recipe, strategy = recipes.get("digits/resnet8"), tf.distribute.get_strategy()
    watched = utilization.Utilization(recipe, RunOptions(), strategy, timer, Waits())
    watched.set_model(tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(1,))]))
    monkeypatch.setattr(utilization, "Energy", lambda _: energy)
    watched.on_train_begin()
    return watched.facts()


def test_the_energy_of_a_run_that_was_continued_is_not_known(monkeypatch):
    for earlier, joules in ((0.0, 5), (60.0, None)):
        facts = measured_run(monkeypatch, before=82, after=219, speed=100.0, earlier=earlier)
        assert facts["energyJoules"] == joules and facts["examplesPerSecond"] == 100
        assert facts["communicationShare"] is None  # of one replica


def test_the_peak_is_the_larger_of_before_and_after_training(monkeypatch):
    facts = measured_run(monkeypatch, before=82, after=219, speed=100.0)
    assert facts["peakFlopsPerSecond"] == 219e9 and facts["peakFrom"] == "a convolution"
    assert facts["shareOfPeak"] == pytest.approx(100 / 219, rel=1e-3)


def test_communication_is_a_share_of_a_step_without_compilation(monkeypatch):
    monkeypatch.setattr(utilization, "communication_seconds", lambda *_: 0.05)
    facts = measured_run(monkeypatch, before=90, after=80, speed=640.0)  # a step of 64 takes 0.1 s
    assert facts["stepSeconds"] == 0.1 and facts["communicationShare"] == 0.5


def test_a_run_that_did_more_than_the_peak_has_no_share_of_it(monkeypatch):
    facts = measured_run(monkeypatch, before=90, after=80, speed=100.0)
    assert facts["shareOfPeak"] is None and facts["peakFlopsPerSecond"] == 90e9
    assert facts["peakFrom"].startswith("a convolution, which training exceeded: no share of it")
    assert "% of the peak" not in utilization.format_line(facts)
