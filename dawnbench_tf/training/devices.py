"""The hardware of a strategy, and the versions of the software, as an entry records them."""

import os
import platform
import re
from importlib.metadata import version

import numpy as np
import tensorflow as tf

import dawnbench_tf
from dawnbench_tf import machine
from dawnbench_tf.machine import Machine


def machine_of(strategy: tf.distribute.Strategy, cpus: int | None = None) -> Machine:
    """Returns hardware, tag and software versions for an entry.

    Args:
      strategy: decides the accelerators and workers that count.
      cpus: number of CPUs, if this process has been restricted to fewer since its start; None:
        those that it may use now.
    """
    name, count = _accelerators(strategy)
    workers, cpus = _workers(strategy), cpus or machine.cpus()
    if name:
        hardware = f"{count} {name} / {machine.memory_gb():.0f} GB / {cpus} CPU"
    else:
        hardware = f"{cpus} CPU {machine.cpu_name()} / {machine.memory_gb():.0f} GB"
    tag = re.sub(r"[^a-z0-9]", "", (f"{count}{name}" if name else f"{cpus}cpu").lower())
    if workers > 1:
        hardware, tag = f"{workers} x ({hardware})", f"{tag}-{workers}workers"
    return Machine(hardware, tag, _software())


def are_cpus(strategy: tf.distribute.Strategy) -> bool:
    """Whether a strategy trains on CPUs, for lack of a GPU or TPU."""
    return not _accelerators(strategy)[0]


def _software() -> dict[str, str]:
    # Every build of TensorFlow names CUDA versions; they count only if a GPU is used.
    build = tf.sysconfig.get_build_info() if tf.config.get_visible_devices("GPU") else {}
    gpu_libraries = (("cuda", "cuda_version"), ("cudnn", "cudnn_version"))
    return {
        "python": platform.python_version(),
        "dawnbench_tf": dawnbench_tf.__version__,
        "tensorflow": tf.__version__,
        "tf_keras": version("tf_keras"),
        "numpy": np.__version__,
        **{name: build[key] for name, key in gpu_libraries if key in build},
        "gitRevision": machine.git_revision(),
    }


def _accelerators(strategy: tf.distribute.Strategy) -> tuple[str, int]:
    """Returns name and number of a worker's accelerators; ("", 0) if it has none."""
    if isinstance(strategy, tf.distribute.TPUStrategy):
        model = os.environ.get("TPU_ACCELERATOR_TYPE", "")  # TPU VMs set it, as v3-8
        return f"TPU {model} core".replace("  ", " "), strategy.num_replicas_in_sync
    gpus = tf.config.get_visible_devices("GPU")
    if not gpus:
        return "", 0
    used = strategy.num_replicas_in_sync // _workers(strategy)
    return tf.config.experimental.get_device_details(gpus[0]).get("device_name", "GPU"), used


def _workers(strategy: tf.distribute.Strategy) -> int:
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return 1
    return len(strategy.cluster_resolver.cluster_spec().as_dict()["worker"])
