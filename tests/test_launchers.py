"""The launchers: shellcheck finds nothing, and the commands of DRY_RUN are as expected."""

import os
import shlex
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from dawnbench_tf import machine

ROOT = Path(__file__).parent.parent
LAUNCH = ROOT / "scripts/launch"
FLAGS = ["--recipe=imagenet/resnet50_v1_5", "--author=A B's"]
TRAIN = ["dawnbench", "train", "--strategy=multi_worker_mirrored"]


def launch(name, *arguments, **environment):
    return subprocess.run(
        [LAUNCH / f"{name}.sh", *arguments],
        env={**os.environ, "DRY_RUN": "1", **environment},
        capture_output=True,
        text=True,
    )


def lines(done):
    assert done.returncode == 0, done.stderr
    return [shlex.split(line) for line in done.stdout.splitlines()]


def test_shellcheck_finds_nothing():
    scripts = [*ROOT.glob("scripts/**/*.sh"), ROOT / ".ci/run"]
    assert len(scripts) >= 8
    command = [Path(sys.executable).parent / "shellcheck", "-x", "-P", "SCRIPTDIR", *scripts]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_slurm_runs_a_worker_on_each_machine():
    (command,) = lines(launch("slurm", *FLAGS))
    assert command[:4] == ["srun", "--kill-on-bad-exit=1", "bash", "-c"]
    assert command[6:] == [*TRAIN, *FLAGS]


@pytest.mark.parametrize(("status", "requeued"), [(0, False), (3, False), (1, True)])
def test_slurm_requeues_what_failed_but_no_miss(status, requeued, tmp_path):
    for name, text in (
        ("srun", 'shift; exec "$@"'),
        ("scontrol", f'echo "$@" > {tmp_path}/requeued'),
        ("dawnbench", f"exit {status}"),
    ):
        (tmp_path / name).write_text(f"#!/bin/bash\n{text}\n")
        (tmp_path / name).chmod(stat.S_IRWXU)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "DRY_RUN": "", "SLURM_JOB_ID": "7"}
    assert launch("slurm", *FLAGS, **environment).returncode == 0
    assert (tmp_path / "requeued").exists() == requeued


def test_ssh_gives_each_host_its_index_and_all_of_them():
    commands = lines(launch("ssh", "a,b", *FLAGS, PORT="99"))
    assert [command[4] for command in commands] == ["a", "b"]
    for index, command in enumerate(commands):
        there = shlex.split(command[5])  # as the shell on the host does
        own = ["--worker_hosts=a:99,b:99", f"--task_index={index}"]
        assert there == [*TRAIN, *own, *FLAGS]


def test_kubernetes_gets_a_tfjob():
    done = launch("kubernetes", "job", "3", "8", *FLAGS, IMAGE="reg/image", CLAIM="claim")
    worker = yaml.safe_load(done.stdout)["spec"]["tfReplicaSpecs"]["Worker"]
    assert worker["replicas"] == 3 and worker["restartPolicy"] == "OnFailure"
    pod = worker["template"]["spec"]
    (container,) = pod["containers"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": 8}
    assert container["command"][3:] == ["-", *TRAIN, *FLAGS]
    assert pod["volumes"][0]["persistentVolumeClaim"]["claimName"] == "claim"
    assert container["image"] == "reg/image"


def test_a_tpu_vm_is_made_used_and_deleted():
    commands = lines(launch("tpu_vm", "vm", *FLAGS, ZONE="z", TYPE="v3-8", DISK="shards"))
    gcloud_actions = [command[4] for command in commands if command[0] == "gcloud"]
    assert gcloud_actions == ["create", "scp", "ssh", "ssh", "ssh", "scp", "delete"]
    assert "--accelerator-type=v3-8" in commands[0] and "--zone=z" in commands[0]
    train = next(c[-1].removeprefix("--command=") for c in commands if "dawnbench train" in c[-1])
    assert shlex.split(train)[2:] == ["--strategy=tpu", "--tpu=local", "--output_dir=run", *FLAGS]
    packages = machine.INSTALL_TPU.partition("--no-deps ")[2]
    for path in ("scripts/launch/tpu_vm.sh", "docs/install.md"):  # as doctor states it
        assert packages in (ROOT / path).read_text(), path


def test_ssh_without_hosts_is_refused():
    done = launch("ssh", *FLAGS)
    assert done.returncode == 1 and done.stdout == ""
    first = done.stderr.splitlines()[0]
    assert first == f"{FLAGS[0]}: should be HOST1,HOST2; flags come after the hosts"


@pytest.mark.parametrize("name", ["slurm", "ssh", "kubernetes", "tpu_vm"])
def test_without_arguments_a_launcher_says_how_it_is_used(name):
    done = launch(name)
    assert done.returncode == 1 and done.stdout == ""
    assert f"scripts/launch/{name}.sh" in done.stderr and "#" not in done.stderr
