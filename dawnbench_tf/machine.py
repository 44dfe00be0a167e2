"""Describes this machine without TensorFlow: CPU, memory, git revision."""

import os
import platform
import re
import subprocess
from pathlib import Path
from typing import NamedTuple


class Machine(NamedTuple):
    """The machine as an entry describes it."""

    hardware: str  # in one line, as "1 NVIDIA H200 / 128 GB / 16 CPU", "2 CPU AMD EPYC / 24 GB"
    tag: str  # as a file name has it, e.g. "1nvidiah200" or "2cpu"
    software: dict[str, str]  # versions of what decides results and speed, and the git revision


def cpus() -> int:
    """Returns the number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0))


def cpu_name() -> str:
    """Returns the CPU's model name from /proc/cpuinfo."""
    match = re.search(r"model name\s*:\s*(.+)", _cpu_info())
    return match[1].strip() if match else platform.processor() or platform.machine()


def memory_gb() -> float:
    """Returns the machine's memory in GiB."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


def free_gib() -> float:
    """Returns the available memory in GiB; without /proc/meminfo, all of the machine's."""
    info = Path("/proc/meminfo")
    match = re.search(r"MemAvailable:\s*(\d+) kB", info.read_text() if info.exists() else "")
    return int(match[1]) / 2**20 if match else memory_gb()


def has_bfloat16() -> bool:
    """Whether the CPU has bfloat16 instructions; True where /proc/cpuinfo does not tell."""
    names = instructions()
    return not names or not names.isdisjoint({"avx512_bf16", "amx_bf16", "bf16"})


def instructions() -> set[str]:
    """Returns the CPU's instruction sets by their names in /proc/cpuinfo, as avx512_bf16."""
    match = re.search(r"^(?:flags|Features)\s*:(.+)", _cpu_info(), re.MULTILINE)
    return set(match[1].split()) if match else set()


def _cpu_info() -> str:
    """Returns the text of /proc/cpuinfo; "" where there is none."""
    info = Path("/proc/cpuinfo")
    return info.read_text() if info.exists() else ""


def git_revision() -> str:
    """Returns the git revision of the checkout, with "-dirty" if files changed; else "none"."""
    root = Path(__file__).parents[1]
    if not (root / ".git").exists():  # installed, perhaps inside somebody else's checkout
        return "none"
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=40"]
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return "none"
    return result.stdout.strip()
