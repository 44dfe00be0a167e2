"""Training on two devices, and on two workers, equals training on one."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from dawnbench_tf import machine, recipes, terminal, train
from dawnbench_tf.clock import DAWNBENCH, Clock
from dawnbench_tf.data import dataset
from dawnbench_tf.recipe.options import RunOptions
from dawnbench_tf.refusals import Refusal
from dawnbench_tf.training import fitting, strategies
from tests import warm

LONG = pytest.mark.long
PROGRAM = Path(__file__).parent / "loss_curve.py"
# In float32 two sums in another order part by 1e-7 and training multiplies that; in float64 only
# a mistake parts the curves.
SHORT = (  # epochs of 8 steps
    *("--train_examples=256", "--batch_size=32", "--crop_size=16"),
    *("--steps_per_execution=1", "--peak_tflops=1"),
)
FLAGS = (
    *SHORT,
    *("--precision=float64", "--epochs=2", "--test_views=mirror"),
    *("--average=0.9", "--average_every=4", "--lookahead"),
)

IN_48S = (*SHORT, "--precision=float64", "--epochs=1", "--train_examples=512", "--batch_size=48")


def start(folder, *flags, program=(str(PROGRAM),)):
    return subprocess.Popen(
        [*warm.python(), *program, f"--output_dir={folder / 'out'}", *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process):
    out, error = process.communicate(timeout=300)
    assert process.returncode == 0, error[-3000:]
    return json.loads(out.splitlines()[-1])


def free_port():
    """Returns a port that no other running test on this machine has."""
    for port in range(20_000, 32_000):  # below those that the system gives to clients
        mark = socket.socket(socket.AF_UNIX)
        try:
            mark.bind(f"\0dawnbench-tests-port-{port}")  # abstract: gone with this process
            socket.create_server(("localhost", port)).close()
        except OSError:
            mark.close()
            continue
        mark.detach()  # open for as long as this process lives
        return port
    raise AssertionError("no free port")


def cluster(count=2):
    hosts = ",".join(f"localhost:{free_port()}" for _ in range(count))
    return "--strategy=multi_worker_mirrored", f"--worker_hosts={hosts}"


def run_workers(folder, *flags, count=2):
    flags = (*cluster(count), *flags)
    workers = [start(folder, *flags, f"--task_index={index}") for index in range(count)]
    return [finish(worker) for worker in workers]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """Returns losses and accuracies on one device."""
    return finish(start(tmp_path_factory.mktemp("alone"), *FLAGS))


def same_curve(curve, wanted, steps=2 * 8):
    assert len(wanted["losses"]) == steps and wanted["losses"][-1] < wanted["losses"][0]
    assert curve["losses"] == pytest.approx(wanted["losses"], abs=1e-4)
    assert curve["accuracies"] == wanted["accuracies"]


@LONG
def test_nchw_gives_the_curve_of_nhwc(tmp_path):
    flags = (*SHORT, "--epochs=1", "--learning_rate=0.001")
    last, first = (
        finish(start(tmp_path / layout, *flags, f"--data_format={layout}"))["losses"]
        for layout in ("NHWC", "NCHW")
    )
    assert first[:5] == pytest.approx(last[:5], abs=1e-4)  # then rounding parts float32 curves
    assert first == pytest.approx(last, abs=1e-2)


TWO = ("--strategy=mirrored", "--logical_cpus=2")


@pytest.mark.parametrize("flags", [TWO, pytest.param(["--strategy=one_device"], marks=LONG)])
def test_a_strategy_gives_the_curve_of_none(tmp_path, alone, flags):
    same_curve(finish(start(tmp_path, *FLAGS, *flags)), alone)


@LONG
def test_mixed_images_and_a_cycle_of_momentum_give_the_single_device_s_curve(tmp_path):
    flags = (
        *SHORT,
        *("--precision=float64", "--epochs=2", "--crop_size=28", "--rotation=5", "--mixup=0.4"),
        *("--schedule=cosine_points", "--schedule_epochs=0,1,2", "--schedule_factors=0.1,1,0"),
        *("--schedule_momenta=0.95,0.85,0.95", "--color_jitter=0.2,0.2,0.2"),
        *("--brightness_contrast=0.1,0.1", "--test_views=mirror", "--views_share=0.5"),
        *("--image_sizes=20,28", "--image_size_epochs=1"),
    )
    alone = start(tmp_path / "1", *flags)
    same_curve(finish(start(tmp_path / "2", *flags, *TWO)), finish(alone))


@pytest.fixture(scope="module")
def in_48s(tmp_path_factory):
    """Returns losses and accuracies on one device, in batches that many numbers divide."""
    return finish(start(tmp_path_factory.mktemp("in_48s"), *IN_48S))


@LONG
@pytest.mark.parametrize("count", [1, 3, 8, 16])
def test_any_number_of_devices_gives_the_curve(tmp_path, in_48s, count):
    flags = ("--strategy=mirrored", f"--logical_cpus={count}")
    same_curve(finish(start(tmp_path, *IN_48S, *flags)), in_48s, steps=11)


# 12 workers: ranks of two digits.
@LONG
@pytest.mark.parametrize("count", [4, 8, 12])
def test_any_number_of_workers_gives_the_curve(tmp_path, in_48s, count):
    for curve in run_workers(tmp_path, *IN_48S, count=count):
        same_curve(curve, in_48s, steps=11)


@pytest.fixture(scope="module")
def together(tmp_path_factory):
    """Returns the folder of two workers, and each worker's curve."""
    folder = tmp_path_factory.mktemp("together")
    return folder, run_workers(folder, *FLAGS)


def test_two_workers_give_the_single_device_s_curve(together, alone):
    for curve in together[1]:
        same_curve(curve, alone)


@LONG
def test_two_workers_go_on_from_their_common_folder(tmp_path, together, alone):
    shutil.copytree(together[0] / "out", tmp_path / "out")
    checkpoints = sorted(path.name for path in (tmp_path / "out").glob("checkpoint-*"))
    assert checkpoints == ["checkpoint-1", "checkpoint-2"]
    shutil.rmtree(tmp_path / "out/checkpoint-2")  # as if killed in the second epoch
    for curve in run_workers(tmp_path, *FLAGS):
        assert curve["losses"] == pytest.approx(alone["losses"][8:], abs=1e-4)
        assert curve["accuracies"] == alone["accuracies"]


def test_a_worker_that_waits_for_another_can_be_interrupted(tmp_path):
    process = start(tmp_path, *cluster(), "--task_index=0")
    assert "worker 0 of 2; waits for all of" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode != 0


COMMAND = ("-m", "dawnbench_tf.train")


def test_a_lost_worker_ends_the_others_in_one_line_and_a_restart_goes_on(tmp_path):
    flags = (*SHORT, *cluster(), "--epochs=2", "--threshold=100", "--steps_per_execution=4")

    def start_both():
        workers = ("--task_index=0", "--task_index=1")
        return [start(tmp_path, *flags, worker, program=COMMAND) for worker in workers]

    chief, other = start_both()
    while not (tmp_path / "out/checkpoint-1").exists():
        assert chief.poll() is None, chief.stderr.read()
        time.sleep(0.1)
    other.kill()
    other.communicate()
    error = chief.communicate(timeout=15)[1]  # it ends, it does not wait for ever
    assert chief.returncode == 1
    line = "dawnbench train: a worker has ended, and its output says why; the same command on "
    assert error.splitlines()[-1] == line + "all workers continues"
    chief, other = start_both()
    error = chief.communicate(timeout=200)[1]
    said = other.communicate(timeout=60)[0].splitlines()
    assert (chief.returncode, other.returncode) == (3, 3) and "epoch 1/2" not in error
    assert said[-1] == f"this worker is done; worker 0 writes the results to {tmp_path / 'out'}"
    lines = (tmp_path / "out/rows.tsv").read_text().splitlines()
    assert [line.split("\t")[0] for line in lines] == ["epoch", "1", "2"]
    parts = json.loads((tmp_path / "out/clock.json").read_text())
    assert parts["wait"] > 0 and "wait" not in DAWNBENCH


def test_workers_that_were_told_different_things_are_refused(tmp_path):
    flags = cluster()
    own = [("--task_index=0",), ("--task_index=1", "--learning_rate=0.3")]
    workers = [start(tmp_path, *flags, *mine, program=COMMAND) for mine in own]
    for process in workers:
        *_, line = process.communicate(timeout=120)[1].splitlines()
        assert "workers were given different --learning_rate; give all" in line
        assert process.returncode == 1
    assert not (tmp_path / "out").exists()  # nothing was claimed


def test_what_changes_a_run_is_equal_on_all_workers(monkeypatch):
    rows = []

    def gather(own, axis):
        rows.append(own)
        return tf.concat([rows[0], own], axis)

    monkeypatch.setattr(strategies, "count_workers", lambda _: 2)
    monkeypatch.setattr(tf, "function", lambda function: function)
    two = SimpleNamespace(run=lambda function: function(), gather=gather)
    recipe, options = recipes.get("digits/resnet8"), RunOptions()
    fitting.check_agreement(two, recipe, options)
    with pytest.raises(Refusal, match="different --batch_size; give all"):
        fitting.check_agreement(two, recipe.with_values(batch_size=32), options)
    others = {"deterministic": True, "data_format": "NCHW", "jit_compile": True, "max_steps": 9}
    for name, value in (others | {"steps_per_execution": 3}).items():
        with pytest.raises(Refusal, match=f"workers were given different --{name}; give all"):
            fitting.check_agreement(two, recipe, replace(options, **{name: value}))
    with pytest.raises(Refusal, match="workers were given different weights, of --pretrained"):
        model = SimpleNamespace(get_weights=lambda: [np.ones(3)])
        fitting.check_agreement(two, recipe, options, model=model)


def test_a_worker_that_ends_while_a_new_run_is_built_leaves_no_folder(tmp_path, monkeypatch):
    def check(*facts, model=None):
        if model is not None:  # the last check: of the weights
            raise tf.errors.UnavailableError(None, None, "Connection reset by peer")

    monkeypatch.setattr(fitting, "check_agreement", check)
    monkeypatch.setattr(strategies, "is_chief", lambda _: True)
    monkeypatch.setattr(strategies, "count_workers", lambda _: 2)
    with pytest.raises(Refusal, match="^a worker has ended, and its output says why; the same "):
        train.train(recipes.get("digits/resnet8"), output=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_data_that_raise_leave_no_folder_and_a_crash_stays(tmp_path, monkeypatch):
    def data(*_):
        raise KeyError("images")

    recipe = recipes.get("digits/resnet8")
    with pytest.raises(KeyError):
        train.train(recipe, output=tmp_path / "out", data=data)
    assert not (tmp_path / "out").exists()
    monkeypatch.setattr(dataset, "open", data)
    with pytest.raises(KeyError):
        train.train(recipe, output=tmp_path / "out")
    assert (tmp_path / "out/run.json").exists()  # for a study, which keeps it as a result


@LONG
def test_without_synchronized_batch_norm_two_devices_differ(tmp_path, alone):
    curve = finish(start(tmp_path, *FLAGS, *TWO, "--nosynchronized_batch_norm"))
    assert max(abs(a - b) for a, b in zip(curve["losses"], alone["losses"], strict=True)) > 1e-2


def test_skipped_blocks_want_batch_norm_of_each_replica_s_own():
    placement = dataset.Placement(SimpleNamespace(num_replicas_in_sync=2))
    data = dataset.open(recipes.get("digits/resnet8", final_survival=0.5), placement=placement)
    with pytest.raises(Refusal, match="add --nosynchronized_batch_norm"):
        data.network()


def test_a_tf_config_that_names_no_worker_is_refused(monkeypatch):
    cluster, task = '{"cluster": {"worker": ["a:1"]}', '"task": {"type": "worker"'
    for config in (
        *("not json", "[]", "{}"),
        *(f'{cluster}, {task}, "index": {index}}}}}' for index in ('"x"', "0.5", "1", "-1")),
        f"{cluster}, {task}}}}}",
        f'{{"cluster": {{"worker": []}}, {task}, "index": 0}}}}',
        '{"cluster": {"ps": ["a:1"]}, "task": {"type": "ps", "index": 0}}',
    ):
        monkeypatch.setenv("TF_CONFIG", config)
        with pytest.raises(Refusal, match="^TF_CONFIG: should be {.cluster.: .*N from 0 to"):
            strategies._cluster(RunOptions(strategy="multi_worker_mirrored"))


def test_flags_of_other_strategies_are_refused():
    for name, value, strategy in (
        ("worker_hosts", "a:1,b:2", "multi_worker_mirrored"),
        ("task_index", 1, "multi_worker_mirrored"),
        ("tpu", "mine", "tpu"),
    ):
        with pytest.raises(Refusal, match=f"^--{name}={value}: is for --strategy={strategy}"):
            strategies.build(RunOptions(**{name: value}), Clock())
    with pytest.raises(Refusal, match="^--task_index=0: needs --worker_hosts"):
        strategies._cluster(RunOptions(task_index=0))
    with pytest.raises(Refusal, match="'b:99999' should be HOST:PORT"):
        strategies._cluster(RunOptions(worker_hosts="a:1,b:99999"))


def test_a_process_has_one_mirrored_strategy():
    """A second one's collectives have the numbers of the first one's, which TensorFlow refuses."""
    options = RunOptions(strategy="mirrored")
    assert strategies.build(options, Clock()) is strategies.build(options, Clock())


def test_a_checksum_is_of_labels_pixels_and_texts():
    data = dataset.open(recipes.get("digits/resnet8", train_examples=100))
    train = data.splits.train
    pixels = np.array(train.held)
    pixels[7, 3, 2, 1] += 1
    changes = [{"labels": np.roll(train.labels, 1)}, {"held": tf.constant(pixels)}, {}]
    splits = [data.splits._replace(train=train._replace(**change)) for change in changes]
    sums = [fitting.checksum(own) for own in splits]
    assert len({*sums}) == 3 and sums[2] == fitting.checksum(data.splits)
    questions = dataset.open(recipes.get("qa_mini/bidaf", train_examples=60))
    text = questions.splits.test_corpus
    changed = text._replace(contexts=["x", *text.contexts[1:]])
    other = questions.splits._replace(test_corpus=changed)
    assert 0 <= fitting.checksum(questions.splits) != fitting.checksum(other) < 2**31


SELECTED = {"proxy": "resnet8_v1_pad"}, {"hardest": 48}
PROXY, HARDEST = (recipes.get("digits/resnet8", **changes) for changes in SELECTED)


@pytest.mark.parametrize(
    "recipe, options, line",
    [
        ("qa_mini/bidaf", {"strategy": "tpu"}, "bucket_boundaries=60,80: .* one length; 80 alone"),
        ("imagenette/resnet18", {"strategy": "tpu"}, "image_sizes=64,96: .* one size; 96 alone"),
        ("qa_mini/drqa", {"data_format": "NCHW"}, "data_format=NCHW: is a layout of images"),
        (PROXY, {"strategy": "mirrored"}, "proxy=resnet8_v1_pad: is for --strategy=off or one_d"),
        (HARDEST, {"strategy": "mirrored"}, "hardest=48: is for --strategy=off or one_device"),
    ],
)
def test_what_can_t_run_on_the_devices_is_refused(recipe, options, line):
    with pytest.raises(Refusal, match=f"^--{line}"):
        strategies.check(tf.distribute.get_strategy(), RunOptions(**options), recipes.get(recipe))


def test_workers_with_different_numbers_of_gpus_are_refused():
    def devices(*gpus):
        kinds = [["CPU:0", *(f"GPU:{n}" for n in range(count))] for count in gpus]
        tasks = [f"/job:worker/replica:0/task:{task}/device:" for task in range(len(gpus))]
        return [task + kind for task, own in zip(tasks, kinds, strict=True) for kind in own]

    for even in ((0, 0), (11, 11), (1,) * 12):
        strategies._check_gpus(devices(*even))
    for first, second in ((8, 4), (1, 0)):
        line = f"--num_gpus: .* not {first} on worker 0, {second} on worker 1$"
        with pytest.raises(Refusal, match=line):
            strategies._check_gpus(devices(first, second))


@pytest.mark.parametrize(
    ("precision", "instructions", "warned"),
    [
        ("mixed_bfloat16", {"avx2"}, True),
        ("mixed_bfloat16", {"avx2", "avx512_bf16"}, False),
        ("mixed_bfloat16", set(), False),  # unknown
        ("float32", {"avx2"}, False),
    ],
)
def test_a_cpu_without_bfloat16_is_warned_of(monkeypatch, precision, instructions, warned):
    lines = []
    monkeypatch.setattr(machine, "instructions", lambda: instructions)
    monkeypatch.setattr(terminal, "say", lines.append)
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda _: [])  # no GPU
    recipe = recipes.get("digits/resnet8", precision=precision)
    strategies.check(tf.distribute.get_strategy(), RunOptions(), recipe)
    assert ["--precision=float32 is likely faster" in line for line in lines] == [True] * warned


SLURM = {
    "SLURM_STEP_NODELIST": "node[1-2]",
    "SLURM_STEP_NUM_TASKS": "2",
    "SLURM_STEP_TASKS_PER_NODE": "1(x2)",
    "SLURM_PROCID": "1",
}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"SLURM_STEP_NUM_TASKS": None}, r"SLURM_STEP_NUM_TASKS=\(not set\), .*: can't be read"),
        ({"SLURM_STEP_TASKS_PER_NODE": None}, "SLURM_STEP_TASKS_PER_NODE"),
        ({"SLURM_STEP_NUM_TASKS": "two"}, "SLURM_STEP_NUM_TASKS=two, .*: can't be read"),
        ({"SLURM_STEP_NODELIST": "node[1-"}, r"SLURM_STEP_NODELIST=node\[1-, .*can't be read"),
    ],
)
def test_odd_variables_of_slurm_are_one_line(monkeypatch, changes, words):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    for name, value in {**SLURM, **changes}.items():
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    with pytest.raises(Refusal, match=words):
        strategies._from_slurm()


def test_workers_are_found_by_flag_tf_config_and_slurm(monkeypatch):
    def curve(**options):
        resolver = strategies._cluster(RunOptions(strategy="multi_worker_mirrored", **options))
        return resolver.cluster_spec().as_dict()["worker"], resolver.task_id

    for name, value in SLURM.items():
        monkeypatch.setenv(name, value)
    assert curve() == (["node1:8888", "node2:8888"], 1)
    config = {"cluster": {"worker": ["a:1", "b:2"]}, "task": {"type": "worker", "index": 1}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    assert curve() == (["a:1", "b:2"], 1)
    assert curve(worker_hosts="c:1,d:2", task_index=0) == (["c:1", "d:2"], 0)


def test_this_machine_is_described():
    strategy = tf.distribute.get_strategy()
    here = strategies.machine_of(strategy)
    assert here.hardware.startswith(f"{len(os.sched_getaffinity(0))} CPU ")
    kilobytes = int(re.search(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text())[1])
    assert here.hardware.endswith(f" / {kilobytes / 2**20:.0f} GB")
    assert re.fullmatch(r"[a-z0-9-]+", here.tag)
    whole = strategies.machine_of(strategy, cpus=48)  # the process stays on fewer
    if not tf.config.get_visible_devices("GPU"):
        assert whole.hardware.startswith("48 CPU ") and whole.tag == "48cpu"


def test_software_names_versions_and_revision_and_cuda_where_a_gpu_is():
    software = strategies.machine_of(tf.distribute.get_strategy()).software
    assert software["tensorflow"] == tf.__version__
    assert ("cuda" in software) == bool(tf.config.get_visible_devices("GPU"))
    head = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True)
    if not head.returncode:
        assert software["gitRevision"].removesuffix("-dirty") == head.stdout.strip()


def test_hardware_is_that_which_was_used(monkeypatch):
    names = ["NVIDIA A100", "NVIDIA A100", "Tesla T4"]
    monkeypatch.setattr(tf.config, "get_visible_devices", lambda kind: names)
    details = tf.config.experimental
    monkeypatch.setattr(details, "get_device_details", lambda name: {"device_name": name})
    two, three = (SimpleNamespace(num_replicas_in_sync=n) for n in (2, 3))
    assert strategies.machine_of(two).hardware.startswith("2 NVIDIA A100 / ")
    assert strategies.machine_of(three).hardware.startswith("3 NVIDIA A100 and Tesla T4 / ")
    here = strategies.machine_of(two, on_cpu=True)  # of a runtime without GPUs
    assert "A100" not in here.hardware and "cuda" not in here.software


def test_a_split_cpu_hides_the_gpus(monkeypatch):
    chosen = []
    tf.config.list_logical_devices()  # after it TensorFlow splits nothing
    with pytest.raises(Refusal, match="^--logical_cpus=2: this process uses its devices already"):
        strategies.build(RunOptions(strategy="mirrored", logical_cpus=2), Clock())
    for name, function in (
        ("set_logical_device_configuration", lambda *_: None),
        ("list_physical_devices", lambda kind: [f"{kind}:0", f"{kind}:1"]),
        ("set_visible_devices", lambda devices, kind: chosen.append(devices)),
    ):
        monkeypatch.setattr(tf.config, name, function)
    with pytest.raises(Refusal, match="--num_gpus=2: needs --strategy=mirrored; "):
        strategies.build(RunOptions(num_gpus=2), Clock())
    for flags in ({"logical_cpus": 2}, {}, {"num_gpus": 1}):
        strategies.build(RunOptions(strategy="mirrored", **flags), Clock())
    assert chosen == [[], ["GPU:0"]]
