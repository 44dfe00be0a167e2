"""Distribution strategies by the name of --strategy, and their limits.

Under every strategy `batch_size` is the global batch: each replica trains on an equal part of it,
and the gradients are those of its mean loss.
"""

import json
import os
import platform
import re
import shutil
import signal
import socket
import sys
from collections import Counter
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version

import numpy as np
import tensorflow as tf
from official.common import distribute_utils
from tensorflow.python.framework.config import is_op_determinism_enabled

import dawnbench_tf
from dawnbench_tf import flags, machine, terminal
from dawnbench_tf.clock import Clock
from dawnbench_tf.machine import Machine
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.recipe.options import RunOptions
from dawnbench_tf.refusals import Refusal, one_line, refuse, refusing

SECONDS_TO_REACH_A_TPU = 5
LOST_WORKER = (  # errors of the other workers when one is lost
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
)
_ONE_DEVICE = ("off", "one_device")  # strategies without communication


def build(options: RunOptions, clock: Clock) -> tf.distribute.Strategy:
    """Builds the strategy of the run options; call it before any other use of a device."""
    # It also sets the visible GPUs, splits the CPU into logical devices, and enables deterministic
    # operations, as the options say.
    for name in ("worker_hosts", "task_index", "tpu"):
        own = "tpu" if name == "tpu" else "multi_worker_mirrored"
        value = getattr(options, name)
        if options.strategy != own and value != getattr(RunOptions, name):
            refuse(name, value, f"is for --strategy={own}")
    if options.logical_cpus:
        parts = [tf.config.LogicalDeviceConfiguration()] * options.logical_cpus
        cpu = tf.config.list_physical_devices("CPU")[0]
        reason = "this process uses its devices already; start a new one"
        with refusing(f"--logical_cpus={len(parts)}", reason, RuntimeError):
            tf.config.set_logical_device_configuration(cpu, parts)
    if options.deterministic:
        tf.config.experimental.enable_op_determinism()
    elif is_op_determinism_enabled():
        terminal.say("operations stay deterministic, as this process has asked for it before")
    gpus = tf.config.list_physical_devices("GPU")
    if options.num_gpus > len(gpus):
        text = f"this machine has {len(gpus)} GPUs that TensorFlow can use"
        refuse("num_gpus", options.num_gpus, text)
    if options.num_gpus > 1 and options.strategy in ("off", "one_device", "tpu"):
        refuse("num_gpus", options.num_gpus, "needs --strategy=mirrored; --num_gpus=1 is one")
    visible = 0 if options.logical_cpus else options.num_gpus
    if visible >= 0:
        tf.config.set_visible_devices(gpus[:visible], "GPU")
    if options.strategy == "multi_worker_mirrored":
        with clock.part("wait"):  # until the last worker has started
            return _multi_worker_mirrored(options)
    if options.strategy == "tpu":
        return _tpu(options)
    with terminal.silent():  # TensorFlow logs each GPU at its first use, at every level
        devices = tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU")
    if options.strategy == "one_device":
        return tf.distribute.OneDeviceStrategy(f"{devices[0].device_type}:0")
    if options.strategy == "mirrored":
        return _mirrored(*(device.name for device in devices))
    return tf.distribute.get_strategy()


@cache
def _mirrored(*devices: str) -> tf.distribute.Strategy:
    # One for a process: each new one numbers its collectives from 1 on, and TensorFlow refuses a
    # number that an earlier one used for another shape.
    return tf.distribute.MirroredStrategy(devices)


def is_one_gpu(strategy: tf.distribute.Strategy) -> bool:
    """Whether a strategy trains on one GPU, without communication."""
    mirrored = tf.distribute.MirroredStrategy, tf.distribute.MultiWorkerMirroredStrategy
    is_one = strategy.num_replicas_in_sync == 1 and not isinstance(strategy, mirrored)
    return is_one and bool(tf.config.list_logical_devices("GPU"))


def check(strategy: tf.distribute.Strategy, options: RunOptions, recipe: Recipe) -> None:
    """Raises Refusal if a recipe can't be trained on the strategy's devices; warns of slow ones."""
    for name, quantity in (("bucket_boundaries", "length"), ("image_sizes", "size")):
        values: tuple[int, ...] = getattr(recipe.data, name, ())
        if options.strategy == "tpu" and len(values) > 1:
            refuse(name, values, f"a TPU takes one {quantity}; {values[-1]} alone would run")
    if options.strategy == "tpu" and getattr(recipe.data, "rectangular_test", False):
        refuse("rectangular_test", True, "a TPU takes one size; --norectangular_test would run")
    replicas = strategy.num_replicas_in_sync
    on_gpu = bool(tf.config.list_logical_devices("GPU"))
    for name in ("proxy", "hardest"):
        if (value := getattr(recipe.data, name)) and options.strategy not in _ONE_DEVICE:
            refuse(name, value, f"is for --strategy={' or '.join(_ONE_DEVICE)}")
    for size in recipe.batch_sizes:
        if size % replicas:
            near = max(size // replicas, 1) * replicas
            name = "batch_size" if size == recipe.batch_size else "later_batch_sizes"
            text = f"should divide by the {replicas} replicas; {near} would, or fewer devices"
            refuse(name, size, text)
    if options.jit_compile and options.strategy == "tpu":
        refuse("jit_compile", True, "XLA always compiles for a TPU; leave it out")
    if options.jit_compile and replicas > 1 and not on_gpu:
        text = f"XLA can't compile one step for {replicas} CPUs; --nojit_compile would run"
        refuse("jit_compile", True, text)
    if recipe.precision == "mixed_float16" and not on_gpu:
        text = "float16 needs a GPU; mixed_bfloat16 or float32 would run here"
        refuse("precision", recipe.precision, text)
    if options.data_format == "NCHW" and recipe.whole_task.inputs == "questions":
        refuse("data_format", "NCHW", f"is a layout of images; {recipe.whole_task.name} has none")
    if options.data_format == "NCHW" and not _runs_nchw(recipe.precision):
        refuse("data_format", "NCHW", "this device can't train in this layout; NHWC would run here")
    on_cpu = options.strategy != "tpu" and not on_gpu
    if on_cpu and recipe.precision == "mixed_bfloat16" and not machine.has_bfloat16():
        terminal.say(
            "this CPU has no bfloat16 instructions: convolutions' gradients are summed in 16 bits, "
            "with errors; --precision=float32 is likely faster"
        )


def _runs_nchw(precision: str) -> bool:
    """Whether the device runs a convolution and its gradients in NCHW; a CPU needs oneDNN."""
    images = tf.ones([1, 3, 8, 8], tf.keras.mixed_precision.Policy(precision).compute_dtype)

    @tf.function
    def gradient(kernel: tf.Tensor) -> list[tf.Tensor]:
        return tf.gradients(tf.nn.conv2d(images, kernel, 1, "SAME", "NCHW"), [images, kernel])

    try:
        gradient(tf.ones([3, 3, 3, 4], images.dtype))
    except (tf.errors.InvalidArgumentError, tf.errors.UnimplementedError):
        return False
    return True


def _multi_worker_mirrored(options: RunOptions) -> tf.distribute.Strategy:
    resolver = _cluster(options)
    workers = resolver.cluster_spec().as_dict().get("worker", [])
    if not 0 <= resolver.task_id < len(workers):
        text = f"should be in 0..{len(workers) - 1}, for {len(workers)} workers"
        refuse("task_index", resolver.task_id, text)
    if not options.output_dir:
        text = "several workers need the same folder; name one that all of them see"
        refuse("output_dir", "", text)
    # No Python handler runs while TensorFlow waits for workers in C++: SIGINT kills the process.
    # SIGTERM does not: TensorFlow has a handler of its own, and holds the interpreter's lock.
    with flags.handling_signals(signal.SIG_DFL):
        terminal.say(
            f"worker {resolver.task_id} of {len(workers)}; waits for all of {', '.join(workers)}; "
            "if one has ended, its output says why",
            sys.stdout,
        )
        kinds, worker = (tf.errors.OpError, RuntimeError, ValueError), workers[resolver.task_id]
        with refusing(f"worker {worker}", "can't take part", *kinds), terminal.silent():
            strategy = tf.distribute.MultiWorkerMirroredStrategy(resolver)
    _check_gpus([device.name for device in tf.config.list_logical_devices()])
    return strategy


def _check_gpus(devices: Sequence[str]) -> None:
    """Raises Refusal if workers have different numbers of GPUs: they would wait forever."""
    counts = Counter[int]()
    for name in devices:
        device = tf.DeviceSpec.from_string(name)
        counts[device.task] += device.device_type == "GPU"
    if len({*counts.values()}) > 1:
        each = ", ".join(f"{count} on worker {task}" for task, count in sorted(counts.items()))
        raise Refusal(f"--num_gpus: all workers need the same number of GPUs, not {each}")


def _cluster(options: RunOptions) -> tf.distribute.cluster_resolver.ClusterResolver:
    """Returns the cluster's resolver: from the flags, else TF_CONFIG, else SLURM's variables."""
    if options.worker_hosts:
        hosts = options.worker_hosts.split(",")
        for host in hosts:
            name, _, port = host.rpartition(":")
            if not name or not port.isdecimal() or not 0 < int(port) < 2**16:
                refuse("worker_hosts", options.worker_hosts, f"{host!r} should be HOST:PORT")
        return tf.distribute.cluster_resolver.SimpleClusterResolver(
            tf.train.ClusterSpec({"worker": hosts}), task_type="worker", task_id=options.task_index
        )
    if options.task_index != RunOptions.task_index:
        refuse("task_index", options.task_index, "needs --worker_hosts")
    if "TF_CONFIG" in os.environ:
        resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
        fault = (
            'should be {"cluster": {"worker": [...]}, "task": {"type": "worker", "index": N}}, '
            "N from 0 to the number of workers less 1"
        )
        with refusing("TF_CONFIG", fault, ValueError, KeyError, TypeError, AttributeError):
            jobs = resolver.cluster_spec().as_dict()
            index = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
            range(len(jobs["worker"])).index(int(str(index)))  # raises; TensorFlow takes 0.5 for 0
            if resolver.task_type != "worker" or set(jobs) != {"worker"}:
                raise ValueError("other jobs are not used here")
        return resolver
    if "SLURM_STEP_NODELIST" in os.environ:
        return _from_slurm()
    text = "give --worker_hosts and --task_index, or set TF_CONFIG, or start it with srun"
    refuse("strategy", options.strategy, text)


def _from_slurm() -> tf.distribute.cluster_resolver.ClusterResolver:
    names = ("SLURM_STEP_NODELIST", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE")
    values = ", ".join(f"{name}={os.environ.get(name, '(not set)')}" for name in names)
    kinds, hint = (KeyError, ValueError, RuntimeError, IndexError, OSError), "start it with srun"
    with refusing(values, "can't be read", *kinds, hint=f"{hint}, or set TF_CONFIG"):
        if shutil.which("nvidia-smi"):
            return tf.distribute.cluster_resolver.SlurmClusterResolver()
        # Without GPUs the resolver can't distribute them and fails; so state one GPU for each task.
        tasks = int(os.environ["SLURM_STEP_NUM_TASKS"])
        resolver = tf.distribute.cluster_resolver.SlurmClusterResolver(
            gpus_per_node=tasks, gpus_per_task=1, auto_set_gpu=False
        )
        resolver.cluster_spec()  # reads the other variables
        return resolver


def _tpu(options: RunOptions) -> tf.distribute.Strategy:
    if options.tpu.startswith("grpc://"):  # TensorFlow would try for minutes
        host, _, port = options.tpu.removeprefix("grpc://").rpartition(":")
        expected = "should be grpc://HOST:PORT of a TPU that answers"
        with refusing(f"--tpu={one_line(options.tpu)}", expected, OSError, ValueError):
            socket.create_connection((host, int(port)), SECONDS_TO_REACH_A_TPU).close()
    try:
        return distribute_utils.get_distribution_strategy("tpu", tpu_address=options.tpu)
    except tf.errors.NotFoundError:
        text = "no TPU found there; give a TPU VM's `local`, a name or grpc://HOST:PORT"
        refuse("tpu", options.tpu, text)
    except (ValueError, RuntimeError, OSError, tf.errors.OpError) as error:
        refuse("tpu", options.tpu, f"can't be used: {one_line(error)}")


def is_chief(strategy: tf.distribute.Strategy) -> bool:
    """Whether this process is the chief, the one worker that writes the run's files."""
    return count_workers(strategy) == 1 or strategy.cluster_resolver.task_id == 0


def count_workers(strategy: tf.distribute.Strategy) -> int:
    """Returns the number of machines."""
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return 1
    return len(strategy.cluster_resolver.cluster_spec().as_dict()["worker"])


def accelerators(strategy: tf.distribute.Strategy) -> tuple[str, int]:
    """Returns name and number of a worker's accelerators; ("", 0) if it has none."""
    if isinstance(strategy, tf.distribute.TPUStrategy):
        model = os.environ.get("TPU_ACCELERATOR_TYPE", "")  # TPU VMs set it, as v3-8
        return f"TPU {model} core".replace("  ", " "), strategy.num_replicas_in_sync
    gpus = tf.config.get_visible_devices("GPU")
    if not gpus:
        return "", 0
    used = strategy.num_replicas_in_sync // count_workers(strategy)
    details = map(tf.config.experimental.get_device_details, gpus[:used])
    return " and ".join(dict.fromkeys(gpu.get("device_name", "GPU") for gpu in details)), used


def machine_of(
    strategy: tf.distribute.Strategy, cpus: int | None = None, on_cpu: bool = False
) -> Machine:
    """Returns hardware, tag and software versions for an entry."""
    # `cpus` is the number of CPUs at the start of a process that has been restricted to fewer.
    # `on_cpu`: the machine's accelerators were not used.
    name, count = ("", 0) if on_cpu else accelerators(strategy)
    workers, cpus = count_workers(strategy), cpus or machine.cpus()
    if name:
        hardware = f"{count} {name} / {machine.memory_gb():.0f} GB / {cpus} CPU"
    else:
        hardware = f"{cpus} CPU {machine.cpu_name()} / {machine.memory_gb():.0f} GB"
    tag = re.sub(r"[^a-z0-9]", "", (f"{count}{name}" if name else f"{cpus}cpu").lower())
    if workers > 1:
        hardware, tag = f"{workers} x ({hardware})", f"{tag}-{workers}workers"
    # Every build of TensorFlow names CUDA versions; they count only if a GPU is used.
    build = tf.sysconfig.get_build_info() if name and tf.config.get_visible_devices("GPU") else {}
    gpu_libraries = (("cuda", "cuda_version"), ("cudnn", "cudnn_version"))
    software = {
        "python": platform.python_version(),
        "dawnbench_tf": dawnbench_tf.__version__,
        "tensorflow": tf.__version__,
        "tf_keras": version("tf_keras"),
        "numpy": np.__version__,
        **{name: build[key] for name, key in gpu_libraries if key in build},
        "gitRevision": machine.git_revision(),
    }
    return Machine(hardware, tag, software)
