"""This machine: its CPU, memory and git revision, and the environment in which TensorFlow starts.

It needs no TensorFlow.
"""

import math
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from absl import logging

from dawnbench_tf.refusals import Refusal

CGROUP, GROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
CPU_INFO = Path("/proc/cpuinfo")
# Over the harness's TensorFlow: pip does not know that one replaces the other. TensorFlow 2.20
# calls functions that libtpu lacks from 0.0.46 on.
INSTALL_TPU = 'pip install --no-deps --force-reinstall "tensorflow-tpu==2.20.*" "libtpu==0.0.20"'


class Machine(NamedTuple):
    """The machine as an entry describes it."""

    hardware: str  # in one line, as "1 NVIDIA H200 / 128 GB / 16 CPU", "2 CPU AMD EPYC / 24 GB"
    tag: str  # as a file name has it, e.g. "1nvidiah200" or "2cpu"
    software: dict[str, str]  # versions of what decides results and speed, and the git revision


def cpus() -> int:
    """Returns the number of CPUs that this process may use: of its affinity, or its container's."""
    # A cpu.max has the microseconds in each period of microseconds, or "max".
    limits = [text.split() for _, text in _limits("cpu.max")]
    shares = [int(quota) / int(period) for quota, period in limits if quota != "max"]
    return max(1, math.ceil(min([len(os.sched_getaffinity(0)), *shares])))


def cpu_name() -> str:
    """Returns the CPU's model name from /proc/cpuinfo."""
    match = re.search(r"model name\s*:\s*(.+)", _text(CPU_INFO))
    return match[1].strip() if match else platform.processor() or platform.machine()


def memory_gb() -> float:
    """Returns the memory of the machine, or of the process's container, in GiB."""
    limits = [int(text) for _, text in _limits("memory.max") if text.isdigit()]
    return min([os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), *limits]) / 2**30


def free_gib() -> float:
    """Returns the available memory in GiB; without /proc/meminfo, all of the machine's."""
    match = re.search(r"MemAvailable:\s*(\d+) kB", _text(Path("/proc/meminfo")))
    free = [int(match[1]) / 2**20 if match else memory_gb()]
    for group, text in _limits("memory.max"):
        if text.isdigit():
            cached = re.findall(r"(?m)^(?:in)?active_file (\d+)", _text(group / "memory.stat"))
            used = int(_text(group / "memory.current") or 0) - sum(map(int, cached))
            free.append((int(text) - used) / 2**30)
    return max(min(free), 0.0)


def gpus() -> list[str]:
    """Returns the names of the NVIDIA GPUs, as nvidia-smi lists them; [] without its driver."""
    command = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return []
    return done.stdout.splitlines()


def _limits(name: str) -> list[tuple[Path, str]]:
    """Returns (folder, content) of a file in this process's control groups, cgroup v2."""
    match = re.search(r"^0::(/.*)$", _text(CGROUP), re.MULTILINE)
    group = GROUPS / match[1].strip("/") if match else GROUPS
    folders = [group, *group.parents][: len(group.parts) - len(GROUPS.parts) + 1]
    return [(folder, text) for folder in folders if (text := _text(folder / name))]


def _text(path: Path) -> str:
    """Returns the content of a file of the kernel; "" if it can't be read."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def has_bfloat16() -> bool:
    """Whether the CPU has bfloat16 instructions; True where /proc/cpuinfo does not tell."""
    names = instructions()
    return not names or not names.isdisjoint({"avx512_bf16", "amx_bf16", "bf16"})


def instructions() -> set[str]:
    """Returns the CPU's instruction sets by their names in /proc/cpuinfo, as avx512_bf16."""
    match = re.search(r"^(?:flags|Features)\s*:(.+)", _text(CPU_INFO), re.MULTILINE)
    return set(match[1].split()) if match else set()


def git_revision() -> str:
    """Returns the git revision of the checkout, with "-dirty" if files changed; else "none"."""
    root = Path(__file__).parents[1]
    if not (root / ".git").exists():  # installed, perhaps inside somebody else's checkout
        return "none"
    # With --git-dir, git reads a repository of another owner, as in a container; GIT_DIR is unused.
    command = ["git", f"--git-dir={root / '.git'}", f"--work-tree={root}"]
    command += ["describe", "--always", "--dirty", "--abbrev=40"]
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return "none"
    return result.stdout.strip()


def python() -> list[str]:
    """Returns the beginning of a command that runs Python with the package of this process."""
    # Without -P modules in the working directory, as of a clone, would replace those installed.
    is_from_here = sys.path[0] in ("", str(Path(__file__).parents[1]))
    return [sys.executable, *["-P"] * (not is_from_here)]


def install_command(extra: str) -> str:
    """Returns the command that installs an extra of this package, from the clone that it is in."""
    root = Path(__file__).parents[1]
    source = root if (root / "pyproject.toml").is_file() else "dawnbench_tf"
    return f'pip install "{source}[{extra}]"'


@contextmanager
def importing(verbosity: int = logging.WARNING) -> Iterator[None]:
    """Prepares the environment for a body that imports TensorFlow for the first time."""
    # `tf.keras` is then tf-keras 2. The user's own settings of the environment stay. `verbosity` is
    # absl's from then on. ModuleNotFoundError: tf-keras is not installed; Refusal: this process has
    # used `tf.keras` as Keras 3 before.
    if find_spec("tf_keras") is None:
        hint = install_command("harness")
        raise ModuleNotFoundError(f"tf_keras is not installed; {hint}", name="tf_keras")
    # Keras 3's `fit` fails on several workers and knows no TPU strategy.
    os.environ["TF_USE_LEGACY_KERAS"] = "1"
    defaults = {
        "TF_CPP_MIN_LOG_LEVEL": "3",
        # On GPUs batch normalization in 16 bits then uses cuDNN's NHWC kernels.
        "TF_USE_CUDNN_BATCHNORM_SPATIAL_PERSISTENT": "1",
        # To take all of an H200's memory at the start lasts 2 s, and leaves none to other runtimes.
        "TF_FORCE_GPU_ALLOW_GROWTH": "true",
    }
    if platform.machine() in ("x86_64", "AMD64"):
        # TensorFlow leaves oneDNN out on CPUs without AVX512_VNNI. With it training is up to twice
        # as fast there, and NCHW needs it.
        defaults["TF_ENABLE_ONEDNN_OPTS"] = "1"
    for name, value in defaults.items():
        os.environ.setdefault(name, value)
    check_keras()
    yield
    logging.set_verbosity(verbosity)  # TensorFlow's import has raised it to INFO
    check_keras()


def check_keras() -> None:
    """Raises Refusal if this process uses `tf.keras` as Keras 3, or with other defaults."""
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow and tensorflow.keras.Model.__module__.startswith("keras."):
        text = 'tf.keras is Keras 3 here; set os.environ["TF_USE_LEGACY_KERAS"] = "1" before'
        where = "e.g. in a notebook's first cell, and start the kernel anew"
        raise Refusal(f"{text} anything uses tf.keras, {where}")
    if keras := sys.modules.get("tf_keras"):
        for name, default in (("floatx", "float32"), ("image_data_format", "channels_last")):
            if (value := getattr(keras.backend, name)()) != default:
                text = f'Keras\'s "{name}" is {value}; should be {default}: ~/.keras/keras.json'
                raise Refusal(f"{text} or this program sets it")
