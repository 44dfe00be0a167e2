"""What this machine is, as an entry states it, and which software ran on it."""

import os
import platform
import re
import subprocess
from importlib.metadata import version
from pathlib import Path

import numpy as np
import tensorflow as tf

import dawnbench_tf


def described(strategy) -> dict:
    """All that an entry says of the machine: "hardware", "tag" and "software"."""
    return {"hardware": describe(strategy), "tag": tag(strategy), "software": software()}


def describe(strategy) -> str:
    """The hardware in one line, as "1 NVIDIA H200 / 128 GB / 16 CPU", "2 CPU AMD EPYC / 24 GB"."""
    memory = f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GB"
    name, count = _accelerator(strategy)
    cpus = _cpus()
    if name:
        machine = f"{count} {name} / {memory} / {cpus} CPU"
    else:
        machine = f"{cpus} CPU {_cpu_name()} / {memory}"
    workers = _workers(strategy)
    return f"{workers} x ({machine})" if workers > 1 else machine


def tag(strategy) -> str:
    """The hardware as a file name has it, e.g. "1nvidiah200" or "2cpu"."""
    name, count = _accelerator(strategy)
    cpus = _cpus()
    words = f"{count}{name}" if name else f"{cpus}cpu"
    workers = _workers(strategy)
    return re.sub(r"[^a-z0-9]", "", words.lower()) + (f"-{workers}workers" if workers > 1 else "")


def software() -> dict[str, str]:
    """Versions of what decides results and speed, and the git revision of this checkout."""
    found = {"python": platform.python_version(), "dawnbench_tf": dawnbench_tf.__version__}
    found |= {"tensorflow": tf.__version__, "tf_keras": version("tf_keras")}
    found |= {"numpy": np.__version__}
    build = tf.sysconfig.get_build_info()
    found |= {
        name: build[key]
        for name, key in (("cuda", "cuda_version"), ("cudnn", "cudnn_version"))
        if key in build
    }
    return found | {"gitRevision": _git_revision()}


def _accelerator(strategy):
    """Name and number of a worker's accelerators; ("", 0) where there are none."""
    if isinstance(strategy, tf.distribute.TPUStrategy):
        kind = os.environ.get("TPU_ACCELERATOR_TYPE", "")  # TPU VMs set it, as v3-8
        return f"TPU {kind} core".replace("  ", " "), strategy.num_replicas_in_sync
    gpus = tf.config.get_visible_devices("GPU")
    if not gpus:
        return "", 0
    used = strategy.num_replicas_in_sync // _workers(strategy)
    return tf.config.experimental.get_device_details(gpus[0]).get("device_name", "GPU"), used


def _workers(strategy):
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return 1
    return len(strategy.cluster_resolver.cluster_spec().as_dict()["worker"])


def _cpus():
    """Those this process may use."""
    return len(os.sched_getaffinity(0))


def has_bfloat16() -> bool:
    """Whether this CPU multiplies bfloat16 itself."""
    return bool(re.search(r"\b(avx512_bf16|amx_bf16|bf16)\b", _cpu_info()))


def _cpu_info():
    """What Linux says of the CPUs; "" elsewhere."""
    info = Path("/proc/cpuinfo")
    return info.read_text() if info.exists() else ""


def _cpu_name():
    found = re.search(r"model name\s*:\s*(.+)", _cpu_info())
    return found[1].strip() if found else platform.processor() or platform.machine()


def _git_revision():
    """Revision of the checkout, with "-dirty" for changed files; "none" outside one."""
    root = Path(__file__).parents[1]
    if not (root / ".git").exists():  # installed, perhaps inside somebody else's checkout
        return "none"
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=40"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return "none"
    return done.stdout.strip()
