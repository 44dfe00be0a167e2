"""CPUs and memory of the machine, or of the container that the process runs in."""

import os

import pytest
import tf_keras

from dawnbench_tf import machine
from dawnbench_tf.refusals import Refusal


@pytest.fixture
def group(tmp_path, monkeypatch):
    """The folder of this process's control group, in place of the kernel's."""
    (tmp_path / "cgroup").write_text("1:cpu:/other\n0::/pod/container\n")
    folder = tmp_path / "fs/pod/container"
    folder.mkdir(parents=True)
    monkeypatch.setattr(machine, "CGROUP", tmp_path / "cgroup")
    monkeypatch.setattr(machine, "GROUPS", tmp_path / "fs")
    return folder


def test_a_container_s_limits_count(group, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)))
    (group / "cpu.max").write_text("250000 100000\n")
    (group / "memory.max").write_text(f"{8 << 20}\n")
    (group / "memory.current").write_text(f"{7 << 20}\n")
    cached = f"inactive_file {2 << 20}\nactive_file {1 << 20}\n"  # can be freed
    (group / "memory.stat").write_text(f"anon 5\n{cached}active_anon 9\n")
    assert machine.cpus() == 3 and machine.memory_gb() * 1024 == 8
    assert machine.free_gib() * 1024 == 8 - 7 + 2 + 1


def test_the_smallest_limit_of_a_group_and_those_around_it_counts(group, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)))
    (group / "cpu.max").write_text("max 100000\n")
    (group.parent / "cpu.max").write_text("400000 100000\n")
    (group.parent.parent.parent / "cpu.max").write_text("100000 100000\n")  # outside
    assert machine.cpus() == 4


def test_without_limits_it_is_the_machine(group):
    (group / "memory.max").write_text("max\n")
    pages = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert machine.memory_gb() == pages / 2**30
    assert machine.cpus() == len(os.sched_getaffinity(0))


def test_other_defaults_of_keras_are_refused(monkeypatch):
    machine.check_keras()
    for name, value in (("floatx", "float16"), ("image_data_format", "channels_first")):
        with monkeypatch.context() as patch:
            patch.setattr(tf_keras.backend, name, lambda value=value: value)
            with pytest.raises(Refusal, match=f'"{name}" is {value}; should be .*keras.json'):
                machine.check_keras()
