"""The machine's description in an entry."""

import os
import re
import subprocess
from pathlib import Path

import tensorflow as tf

from dawnbench_tf.training import devices


def test_this_machine_is_described():
    strategy = tf.distribute.get_strategy()
    machine = devices.machine_of(strategy)
    assert machine.hardware.startswith(f"{len(os.sched_getaffinity(0))} CPU ")
    kilobytes = int(re.search(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text())[1])
    assert machine.hardware.endswith(f" / {kilobytes / 2**20:.0f} GB")
    assert re.fullmatch(r"[a-z0-9-]+", machine.tag)


def test_software_names_versions_and_revision():
    software = devices.machine_of(tf.distribute.get_strategy()).software
    assert software["tensorflow"] == tf.__version__
    head = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True)
    if not head.returncode:
        assert software["gitRevision"].removesuffix("-dirty") == head.stdout.strip()


def test_where_no_gpu_is_no_cuda_is_named():
    software = devices.machine_of(tf.distribute.get_strategy()).software
    assert ("cuda" in software) == bool(tf.config.get_visible_devices("GPU"))


def test_a_process_that_stays_on_fewer_cpus_states_those_of_the_machine():
    machine = devices.machine_of(tf.distribute.get_strategy(), cpus=48)
    if not tf.config.get_visible_devices("GPU"):
        assert machine.hardware.startswith("48 CPU ") and machine.tag == "48cpu"
