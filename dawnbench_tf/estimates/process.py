"""Estimates recipes, each timed in a process of its own: its memory and its crash are its own."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from dawnbench_tf import files, terminal
from dawnbench_tf.estimates.prediction import Estimate, predict
from dawnbench_tf.estimates.sample import Sample
from dawnbench_tf.options import Credits, RunOptions
from dawnbench_tf.recipe import Recipe
from dawnbench_tf.refusals import Refusal, one_line
from dawnbench_tf.settings import flat

PROGRAM = "from dawnbench_tf.estimates import process; process.main()"
PYTHON = (sys.executable,)
GRACE = 5.0  # seconds that an evaluation may take beyond the time
_REFUSED = "refused"


def estimate(recipe: Recipe, options: RunOptions = RunOptions(), seconds: float = 60.0) -> Estimate:
    """Times some steps of a recipe in a process of its own, and predicts time and cost.

    Args:
      recipe: the recipe.
      options: devices, data directory and price; without data the examples are generated.
      seconds: time for it, with the import of TensorFlow.

    Raises:
      Refusal: the recipe can't be trained here, or no step ended in this time.
    """
    sample = take_sample(recipe, options, seconds)
    return predict(recipe, sample, options.credits.cost_per_hour)


def estimate_all(
    recipes: Sequence[Recipe],
    options: RunOptions = RunOptions(),
    seconds: float = 300.0,
    report: Callable[[Estimate], None] = lambda _: None,
) -> list[Estimate]:
    """Estimates several recipes, one after another; a failure is the `reason` of its row.

    Args:
      recipes: the recipes.
      options: devices, data directory and price.
      seconds: time for all of them; each has an equal part of what is left.
      report: called with each estimate as soon as it is there.
    """
    last, rows = time.monotonic() + seconds, []
    for number, recipe in enumerate(recipes):
        share = (last - time.monotonic()) / (len(recipes) - number)
        terminal.status(f"{recipe.name} ({number + 1} of {len(recipes)}): up to {share:.0f} s")
        try:
            patience = min(share / 3, max(last - time.monotonic() - share, 0.0)) + GRACE
            sample = take_sample(recipe, options, share, patience)
            row = predict(recipe, sample, options.credits.cost_per_hour)
        except Refusal as refusal:
            row = Estimate(recipe.name, reason=one_line(refusal))
        terminal.status("")
        rows.append(row)
        report(row)
    return rows


def take_sample(
    recipe: Recipe, options: RunOptions, seconds: float, patience: float | None = None
) -> Sample:
    """Times steps of a recipe in a process of its own.

    Args:
      recipe: the recipe.
      options: devices and data directory.
      seconds: time for it.
      patience: seconds after which the process is killed if it needs longer; None: `GRACE`.

    Raises:
      Refusal: the recipe can't be trained here, its process died, or no step ended in this time.
    """
    values = {**flat(options), **flat(options.credits)}
    with tempfile.TemporaryDirectory(prefix="dawnbench-estimate-") as folder:
        path = Path(folder) / "sample.json"
        request = {"recipe": recipe.values(), "options": values, "seconds": seconds}
        command = [*PYTHON, "-c", PROGRAM, json.dumps(request), str(path)]
        with open(Path(folder) / "log.txt", "w+", encoding="utf-8", errors="replace") as log:
            code = _run(command, log, seconds + (GRACE if patience is None else patience))
            log.seek(0)
            return _read(path, code, log.read()[-20_000:], seconds)


def _run(command: list[str], log: Any, seconds: float) -> int | None:
    """Runs a command; returns its status, or None if it was killed after `seconds`."""
    process = subprocess.Popen(  # its stdin closes when this process ends, also by SIGKILL
        command, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True
    )
    try:
        return process.wait(max(seconds, 1.0))
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if process.stdin:
            process.stdin.close()


def _read(path: Path, code: int | None, log: str, seconds: float) -> Sample:
    """Returns the sample that a process wrote; raises Refusal with what went wrong."""
    if not path.exists():
        if code is None:
            raise Refusal(f"no step ended within {seconds:.0f} s; give it more --seconds")
        raise Refusal(_describe_death(code, log))
    facts = files.read_json(path)
    if _REFUSED in facts:
        raise Refusal(str(facts[_REFUSED]))
    return Sample.from_facts(facts)


def _describe_death(code: int, log: str) -> str:
    if code == -signal.SIGKILL:
        return "its process was killed, as for lack of memory; lower --batch_size"
    if code < 0:
        return f"its process ended by signal {-code}"
    lines = [line for line in log.splitlines() if line.strip()]
    return f"its process failed: {one_line(lines[-1], 120) if lines else f'status {code}'}"


def main() -> None:
    """Answers a request on the command line: writes a sample, or the reason for its refusal."""
    from dawnbench_tf import tensorflow_env
    from dawnbench_tf.clock import Clock

    request, path = json.loads(sys.argv[1]), Path(sys.argv[2])
    threading.Thread(target=_end_with_parent, args=[path.parent], daemon=True).start()
    clock = Clock()
    with clock.part("import"), tensorflow_env.importing():
        from dawnbench_tf.estimates import sampling

    def write(sample: Sample) -> None:
        files.write_json(path, sample.facts())

    with _writing_refusals(path):
        recipe = Recipe.from_values(request["recipe"])
        options = _options(request["options"])
        write(sampling.sample(recipe, options, request["seconds"], write, clock))
    sys.stdout.flush()
    os._exit(0)  # TensorFlow's threads may take seconds to end


def _end_with_parent(folder: Path) -> None:
    """Waits for the end of the process that asked; removes its folder, and ends this one."""
    sys.stdin.buffer.read()
    files.remove(folder)
    os._exit(1)


@contextmanager
def _writing_refusals(path: Path) -> Iterator[None]:
    try:
        yield
    except Refusal as refusal:
        files.write_json(path, {_REFUSED: str(refusal)})


def _options(values: dict[str, Any]) -> RunOptions:
    """Returns run options from flat JSON values, where lists stand for tuples."""
    values = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
    credits = {name: values.pop(name) for name in flat(Credits())}
    return replace(RunOptions(**values), credits=Credits(**credits))
