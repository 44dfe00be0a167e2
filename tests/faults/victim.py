"""A small run of the command's `train` that is killed, or fails, at a given file operation.

    python -m tests.faults.victim     # a server: reads a request a line, prints an answer a line

Each run is a forked child: TensorFlow is imported once, and the parent runs none of its operations.
The main thread's operations on files below the run's folder are numbered: opening for writing, each
write, fsync, rename, creation and removal; and begin and end of TensorFlow's writing a checkpoint.
"""

import builtins
import contextlib
import io
import json
import os
import signal
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

SECONDS = 60  # after which a child is taken for hung

_PATCHED = ("fsync", "replace", "rename", "mkdir", "unlink", "rmdir")


class Operations:
    """Counts file operations below a folder; before the one with `number`, kills or raises."""

    def __init__(self, folder: Path, number: int | None, action: Any):
        self.folder, self.number, self.action = str(folder), number, action
        self.names: list[str] = []
        self.samples: list[tuple[int, int]] = []  # at each epoch's end: bytes, open files

    def operation(self, name: str, path: object) -> None:
        """Counts an operation before it is done."""
        if threading.current_thread() is not threading.main_thread():
            return
        if self.folder not in (str(path), *map(str, Path(str(path)).parents)):
            return
        self.names.append(f"{name} {os.path.basename(str(path))}")
        if len(self.names) - 1 == self.number:
            if self.action == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            raise OSError(self.action, os.strerror(self.action), str(path))

    def install(self) -> None:
        """Replaces this process's file functions by counting ones."""
        for name in _PATCHED:
            setattr(os, name, self._wrapped(name, getattr(os, name)))
        really_open = builtins.open

        def opened(path, mode="r", *args, **kwargs):
            if not isinstance(path, int) and set(mode) & set("wax+"):
                self.operation("open", path)
                return _Writer(really_open(path, mode, *args, **kwargs), self, path)
            return really_open(path, mode, *args, **kwargs)

        builtins.open = io.open = opened

    def _wrapped(self, name, really):
        def operation(path, *args, **kwargs):
            handle = path if isinstance(path, int) else kwargs.get("dir_fd")
            where = "" if handle is None else os.readlink(f"/proc/self/fd/{handle}")
            self.operation(name, where if isinstance(path, int) else os.path.join(where, path))
            return really(path, *args, **kwargs)

        return operation


class _Writer:
    """A file that counts its writes."""

    def __init__(self, file, operations, path):
        self._file, self._operations, self._path = file, operations, path

    def write(self, content):
        self._operations.operation("write", self._path)
        return self._file.write(content)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._file.close()

    def __iter__(self):
        return iter(self._file)

    def __getattr__(self, name):
        return getattr(self._file, name)


def train(folder: Path, epochs: int, operations: Operations) -> int:
    """Trains a tiny model on the digits for some epochs, in a folder; returns the exit status."""
    import tensorflow as tf

    from dawnbench_tf import clock, recipes, terminal, train
    from dawnbench_tf.recipe.options import RunOptions
    from dawnbench_tf.refusals import Refusal
    from dawnbench_tf.training import fitting

    terminal.show()
    clock.BEAT_SECONDS = 1000.0  # no beat but the first and the last: the same operations each time
    write = tf.train.Checkpoint.write

    def tiny(data, *_):
        tf.keras.utils.set_random_seed(data.recipe.seed)
        layers = [tf.keras.layers.Flatten(), tf.keras.layers.Dense(10)]
        model = tf.keras.Sequential([tf.keras.Input((32, 32, 3)), *layers])
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(tf.keras.optimizers.SGD(0.01, 0.9), loss, steps_per_execution=21)
        model.optimizer.build(model.trainable_variables)
        fitting.prepare_in_steps(model, data)
        return model

    def written(checkpoint, path):
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        handles = len(os.listdir("/proc/self/fd"))
        operations.samples.append((pages * os.sysconf("SC_PAGE_SIZE"), handles))
        operations.operation("begin", path)
        done = write(checkpoint, path)
        operations.operation("end", path)
        return done

    fitting.build, tf.train.Checkpoint.write = tiny, written
    operations.install()
    recipe = recipes.get("digits/resnet8", epochs=epochs, threshold=100.0)
    try:
        return 0 if train.train(recipe, RunOptions(peak_tflops=1.0), folder).reached else 3
    except Refusal as refusal:
        with contextlib.suppress(SystemExit):
            terminal.exit_with(str(refusal))
        return 1


def _child(request, log):
    output = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    folder = Path(request["folder"])
    operations = Operations(folder, request["operation"], request["action"])
    status = 70  # a traceback
    try:
        status = train(folder, request["epochs"], operations)
    except BaseException:
        traceback.print_exc()
    answer = {"operations": operations.names, "samples": operations.samples}
    Path(f"{log}.operations").write_text(json.dumps(answer))
    sys.stderr.flush()
    os._exit(status)


def serve() -> None:
    """Answers requests until stdin ends."""
    from dawnbench_tf import machine

    with machine.importing():
        import matplotlib.figure  # noqa: F401
        import sklearn.datasets  # noqa: F401

        from dawnbench_tf.runs import picture  # noqa: F401
        from dawnbench_tf.training import session  # noqa: F401

    for line in sys.stdin:
        request = json.loads(line)
        log = Path(f"{request['folder']}.log")
        log.with_name(f"{log.name}.operations").unlink(missing_ok=True)
        begin = time.monotonic()
        child = os.fork()
        if child == 0:
            _child(request, str(log))
        status = None
        while status is None and time.monotonic() - begin < SECONDS:
            ended, code = os.waitpid(child, os.WNOHANG)
            status = os.waitstatus_to_exitcode(code) if ended else None
            time.sleep(0.005)
        if status is None:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        names = log.with_name(f"{log.name}.operations")
        answer = {
            "status": status,
            "said": log.read_text(errors="replace") if log.exists() else "",
            **(json.loads(names.read_text()) if names.exists() else {}),
        }
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    serve()
