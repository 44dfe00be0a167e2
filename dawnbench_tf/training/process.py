"""The process that `speed.take` starts: answers a request on its command line with a speed test."""

import json
import os
import sys
import threading
from pathlib import Path

from dawnbench_tf import files, tensorflow_env
from dawnbench_tf.clock import Clock
from dawnbench_tf.options import RunOptions, with_recorded
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import Refusal


def main() -> None:
    """Writes the speed test, or the reason for its refusal."""
    request, path = json.loads(sys.argv[1]), Path(sys.argv[2])
    threading.Thread(target=end_with_parent, args=[path.parent], daemon=True).start()
    clock = Clock()
    with clock.part("import"), tensorflow_env.importing():
        from dawnbench_tf.training import speed_test
    try:
        test = speed_test.measure(
            Recipe.from_values(request["recipe"]),
            with_recorded(RunOptions(), request["options"]),
            seconds=request["seconds"],
            clock=clock,
            report=lambda part: files.write_json(path, part.facts()),
        )
        files.write_json(path, test.facts())
    except Refusal as refusal:
        files.write_json(path, {"refused": str(refusal)})
    sys.stdout.flush()
    os._exit(0)  # TensorFlow's threads may take seconds to end


def end_with_parent(folder: Path) -> None:
    """Waits for the end of the process that asked; removes its folder, and ends this one."""
    sys.stdin.buffer.read()
    files.remove(folder)
    os._exit(1)
