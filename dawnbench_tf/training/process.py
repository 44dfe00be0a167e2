"""The process that `speed.take` starts: answers the request in a folder with a speed test."""

import os
import pickle
import sys
import threading
from pathlib import Path

from dawnbench_tf import files, machine
from dawnbench_tf.clock import Clock
from dawnbench_tf.recipes.speed import REQUEST, RESULT, SpeedTest
from dawnbench_tf.refusals import Refusal


def main() -> None:
    """Writes the speed test, or its refusal."""
    folder = Path(sys.argv[1])
    threading.Thread(target=end_with_parent, args=[folder], daemon=True).start()
    recipe, options, seconds = pickle.loads((folder / REQUEST).read_bytes())

    def write(result: SpeedTest | Refusal) -> None:
        with files.renamed_to(folder / RESULT) as temporary:
            temporary.write_bytes(pickle.dumps(result))

    clock = Clock()
    with clock.part("import"), machine.importing():
        from dawnbench_tf.training import speed_test
    try:
        write(speed_test.measure(recipe, options, seconds=seconds, clock=clock, report=write))
    except Refusal as refusal:
        write(refusal)
    sys.stdout.flush()
    os._exit(0)  # TensorFlow's threads may take seconds to end


def end_with_parent(folder: Path) -> None:
    """Waits for the end of the process that asked; removes its folder, and ends this one."""
    while os.read(0, 4096):  # sys.stdin would hold its lock: if `main` fails, Python then aborts
        pass
    files.remove(folder)
    os._exit(1)
