"""Python programs in forks of a process that has imported TensorFlow already, and run nothing.

A program that imports TensorFlow spends seconds on that; a fork of a process that has imported it
starts in a tenth of a second. `python()` begins a command line as `sys.executable` would:

    subprocess.run([*warm.python(), "-m", "dawnbench_tf.train", "--epochs=1"])

It starts this file as a small process. That one hands its arguments, environment, folder and
standard streams to the fork, passes signals on to it, and ends as it ends; killed, it takes the
fork along. Use `sys.executable` for what only a process of its own shows: what is imported when,
and settings that TensorFlow reads while it is imported.
"""

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@cache
def python() -> list[str]:
    """Returns the first words of a command line; starts the server that runs its program."""
    name = f"dawnbench-tests-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0{name}")  # abstract: leaves no file behind
        listener.listen()
        number = listener.fileno()
        server = subprocess.Popen(
            [sys.executable, "-m", "tests.warm", "serve", str(number)],
            cwd=ROOT,
            env={**os.environ, "TF_USE_LEGACY_KERAS": "1"},
            stdin=subprocess.DEVNULL,
            pass_fds=[number],
        )
    atexit.register(_end, server)
    return [sys.executable, "-S", "-E", __file__, "relay", name]


def _end(server):
    server.kill()
    server.wait()


def relay(name: str, arguments: list[str]) -> None:
    """Has a program run by the server of that name, and ends as the program does."""
    streams = [number for number in range(3) if _is_open(number)]
    request = {"arguments": arguments, "folder": os.getcwd(), "environment": dict(os.environ)}
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(f"\0{name}")
        socket.send_fds(server, [bytes([sum(1 << number for number in streams)])], streams)
        server.sendall(json.dumps(request).encode() + b"\n")
        with server.makefile() as answers:
            child = int(answers.readline())
            for number in PASSED_ON:
                signal.signal(number, lambda number, _: os.kill(child, number))
            status = int(answers.readline())
    _exit(status)


def _exit(status):
    """Ends this process at once; below 0 by that signal."""
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


def _is_open(number):
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def serve(number: int) -> None:
    """Imports TensorFlow, then runs programs, each in a fork, until the test process is gone."""
    import gc

    parent = os.getppid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the parent, and that this process
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no zombies of watchers
    _import()
    gc.freeze()
    with socket.socket(fileno=number) as server:
        server.settimeout(1)
        while os.getppid() == parent:
            try:
                connection, _ = server.accept()
            except TimeoutError:
                continue
            if os.fork() == 0:
                server.close()
                _watch(connection)
            connection.close()


def _import():
    from dawnbench_tf import machine

    with machine.importing():
        import matplotlib.figure  # noqa: F401
        import sklearn.datasets  # noqa: F401
        from tensorflow.python.eager import context

        from dawnbench_tf.inference import latency, serving  # noqa: F401
        from dawnbench_tf.training import speed_test  # noqa: F401
    if context.context()._initialized:  # its threads would be missing in a fork
        raise RuntimeError("an import has run TensorFlow operations")


def _watch(connection):
    """Starts the program and reports how it ended; kills it when nobody waits any more."""
    connection.setblocking(True)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    (mask,), received, _, _ = socket.recv_fds(connection, 1, 3)
    numbers = [number for number in range(3) if mask >> number & 1]
    with connection.makefile() as lines:
        request = json.loads(lines.readline())
    child = os.fork()
    if child == 0:
        connection.close()
        _become(request, dict(zip(numbers, received, strict=True)))
    for stream in received:
        os.close(stream)
    with suppress(BrokenPipeError):  # then the connection is at its end, and the child is killed
        connection.sendall(b"%d\n" % child)
    ended = os.pidfd_open(child)
    ready, _, _ = select.select([ended, connection], [], [])
    if ended not in ready:
        os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if ended in ready:
        connection.sendall(b"%d\n" % status)
    os._exit(0)


def shorten_warm_ups() -> None:
    """Shortens warm-ups and the measurement of the device's peak: no test needs a steady figure."""
    if utilization := sys.modules.get("dawnbench_tf.training.utilization"):
        utilization.PEAK_SECONDS = 0.02  # instead of 0.1 s
    if latency := sys.modules.get("dawnbench_tf.inference.latency"):
        # At most 0.5 s instead of 20.
        latency.measure.__defaults__ = (*latency.measure.__defaults__[:-1], 0.5)
        latency.SHORT_WARM_UP_SECONDS = 0.2


def _become(request, streams):
    """Runs a program in this process as `python ARGUMENTS` would, and ends the process."""
    import traceback

    from tests import costs

    for number in range(3):
        os.dup2(streams[number], number) if number in streams else os.close(number)
    for stream in streams.values():
        os.close(stream)
    for number in PASSED_ON:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(request["environment"])
    added = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[1:1] = [folder for folder in added if folder]
    os.chdir(request["folder"])
    status = 0
    costs.count_tensorflow()
    shorten_warm_ups()
    try:
        _run(request["arguments"])
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException as error:
        traceback.print_exc()
        status = -signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
    atexit._run_exitfuncs()
    costs.record()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    _exit(status)


def _run(arguments):
    import runpy

    first, *rest = arguments
    if first == "-c":
        sys.argv, sys.path[0] = ["-c", *rest[1:]], ""
        exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__"})
    elif first == "-m":
        sys.argv, sys.path[0] = rest, os.getcwd()
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv, sys.path[0] = arguments, os.path.dirname(first)
        runpy.run_path(first, run_name="__main__")


if __name__ == "__main__":
    mode, whom, *rest = sys.argv[1:]
    serve(int(whom)) if mode == "serve" else relay(whom, rest)
