"""Times two workers of one core each over an emulated network, against one worker of one core.

.venv/bin/python scripts/benchmark_network.py GBITS RECIPE BATCH_SIZE [FLAG ...]

BATCH_SIZE is that of a worker. The workers are in two network namespaces with a link of GBITS
Gbit/s: it needs root, Linux and Debian's iproute2. Prints the scaling efficiency of three rounds
and the predicted range (`dawnbench_tf.studies.scaling`).
"""

import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from dawnbench_tf import models, recipes
from dawnbench_tf.studies import scaling

ROUNDS, STEPS = 3, 8
HOSTS = ("10.213.0.1", "10.213.0.2")
NAMES = ("dawnbench0", "dawnbench1")  # of the namespaces and their ends of the link


def run(*words: str) -> None:
    """Runs a command; raises CalledProcessError if it fails."""
    subprocess.run(words, check=True)


@contextmanager
def network(gbits: float) -> Iterator[None]:
    """Makes two namespaces with a link of `gbits` Gbit/s in each direction."""
    try:
        for name in NAMES:
            run("ip", "netns", "add", name)
        run("ip", "link", "add", NAMES[0], "type", "veth", "peer", "name", NAMES[1])
        burst = f"{max(64, round(gbits * 1000))}kb"
        for name, host in zip(NAMES, HOSTS, strict=True):
            run("ip", "link", "set", name, "netns", name)
            inside = ("ip", "netns", "exec", name)
            run(*inside, "ip", "addr", "add", f"{host}/24", "dev", name)
            run(*inside, "ip", "link", "set", name, "up")
            run(*inside, "ip", "link", "set", "lo", "up")
            rate = ("rate", f"{gbits * 1000:g}mbit", "burst", burst, "latency", "50ms")
            run(*inside, "tc", "qdisc", "add", "dev", name, "root", "tbf", *rate)
        yield
    finally:
        for name in NAMES:
            subprocess.run(("ip", "netns", "delete", name), check=False)


def start(worker: int, *flags: str) -> subprocess.Popen:
    """Starts timed training steps on one core, in a worker's namespace."""
    inside = ("ip", "netns", "exec", NAMES[worker], "taskset", "-c", str(worker))
    train = (sys.executable, "-m", "dawnbench_tf.train", f"--max_steps={STEPS}")
    return subprocess.Popen(
        [*inside, *train, *flags],
        stdout=subprocess.DEVNULL if worker else subprocess.PIPE,  # the chief prints the result
        stderr=None if worker else subprocess.STDOUT,
        text=True,
    )


def step_seconds(*processes: subprocess.Popen) -> float:
    """Returns the median time of a step that the first of the processes printed."""
    try:
        output, _ = processes[0].communicate()
        match = re.search(r"([\d.e+]+) ms a step at the median", output)
        if not match or any(process.wait() for process in processes):
            sys.exit(f"a worker failed:\n{output}")
        return float(match[1]) / 1e3
    finally:
        for process in processes:
            process.kill()


def main(gbits: str, name: str, batch: str, *flags: str) -> None:
    recipe = recipes.get(name)
    flags = (
        *(f"--recipe={name}", f"--synthetic={recipe.task_row.synthetic}"),
        *("--precision=float32", *flags),
    )
    hosts = ",".join(f"{host}:2222" for host in HOSTS)
    alone, together = [], []
    with network(float(gbits)), tempfile.TemporaryDirectory() as folder:
        for _ in range(ROUNDS):
            alone.append(step_seconds(start(0, *flags, f"--batch_size={batch}")))
            both = [
                start(
                    index,
                    *flags,
                    *(f"--batch_size={2 * int(batch)}", f"--output_dir={folder}/run"),
                    *("--strategy=multi_worker_mirrored", f"--worker_hosts={hosts}"),
                    f"--task_index={index}",
                )
                for index in (0, 1)
            ]
            together.append(step_seconds(*both))
    one = statistics.median(alone)
    measured = sorted(first / second for first, second in zip(alone, together, strict=True))
    gradients = 4 * models.get(recipe.model).parameters
    low, high = scaling.predict(one, gradients, scaling.Network(float(gbits)), 2)
    print(
        f"{name}, {batch} examples a worker, {gradients / 1e6:.3g} MB of gradients, {gbits} Gbit/s"
    )
    print(f"a step alone {one:.3g} s, together {statistics.median(together):.3g} s")
    print(f"efficiency {', '.join(f'{share:.0%}' for share in measured)}", end="; ")
    print(f"predicted {low:.0%} to {high:.0%}")


if __name__ == "__main__":
    main(*sys.argv[1:])
