"""Times a trained model on one example after the other: latency, cost, and the accuracy it has.

    python -m dawnbench_tf.infer --model=RUN_DIR [--runtime=litert] [--cost_per_hour=0.9]

Every example of the test, once, in the very runtime and precision that are timed; the entry is
written to the run's folder. Exit status: 0, or 1 for bad input.
"""

import os
import resource
import signal
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from absl import logging

from dawnbench_tf import flags, machine, tensorflow_env, terminal
from dawnbench_tf.inference import runtimes
from dawnbench_tf.inference.runtimes import PRECISIONS, RUNTIMES
from dawnbench_tf.money import dollars
from dawnbench_tf.options import Credits
from dawnbench_tf.refusals import Refusal, refuse
from dawnbench_tf.settings import check, setting
from dawnbench_tf.submission import prices, run_entry
from dawnbench_tf.submission.entry import Entry
from dawnbench_tf.tasks import TASKS, Task

__all__ = ["infer", "Options"]


@dataclass(frozen=True)
class Options:
    """How a run is timed."""

    model: str = setting("", "--output_dir of the training run")
    data_dir: str = setting("", "folder of the data set, or its archive")
    task: str = setting("", "refuse a run of any other task", choices=("", *TASKS))
    runtime: str = setting(
        "auto", "what runs the model; auto tries all", choices=("auto", *RUNTIMES)
    )
    precision: str = setting("", "default: float32, auto tries all", choices=("", *PRECISIONS))
    threads: int = setting(0, "threads, and CPUs to stay on; 0: all there are", low=0)
    passes: int = setting(3, "passes over the test, at most", low=1)
    seconds: float = setting(120.0, "seconds after which no further pass begins", low=0)
    examples: int = setting(0, "time only the first of the test; 0: all, as the rules want", low=0)
    batch_sizes: tuple[int, ...] = setting((), "time batches too, of these sizes: 1,2,4", low=1)
    output_dir: str = setting("", "folder to write the entry to; default: that of --model")
    credits: Credits = Credits()

    def __post_init__(self):
        check(self)


class Timed(NamedTuple):
    """How a model was run, and what was measured of it."""

    runtime: str
    precision: str
    threads: int
    cpus: list[int]  # that the process stayed on
    model_bytes: int  # weights, as the runtime has them
    latencies: Any  # `inference.latency.Latencies`
    score: float
    peak_gib: float  # of the process's memory


def main(_: list[str]) -> int:
    signal.signal(signal.SIGINT, _interrupt)
    try:
        options = flags.read(Options)
        if options.credits.instance == "?":
            terminal.end_quietly()
            terminal.say(prices.format_table(), sys.stdout)
            return 0
        infer(options)
        return 0
    except Refusal as refusal:
        terminal.exit_with(str(refusal))


def _interrupt(number, frame):
    """Ends at once: there is nothing to save, and TensorFlow may swallow an exception."""
    terminal.say("infer.py: interrupted; no entry was written")
    os._exit(128 + number)


def _checked(options):
    """The options with price and threads settled, as far as can be told without TensorFlow."""
    if not options.model:
        refuse("model", "", "should be the --output_dir of a training run")
    path = Path(options.model)
    if path.is_file():
        why = (
            "is a file; models are not opened from files, which may hold code; name a run's folder"
        )
        refuse("model", path, why)
    if not path.is_dir():
        refuse("model", path, "is no folder; should be the --output_dir of a training run")
    cpus = machine.cpus()
    if options.threads > cpus:
        refuse("threads", options.threads, f"should be at most the {cpus} CPUs of this machine")
    credits, line = prices.with_instance_price(options.credits)
    if line:
        terminal.say(line, sys.stdout)
    return replace(options, credits=credits, threads=options.threads or cpus)


def infer(options: Options) -> Entry:
    """Times the run as `options` says, writes its entry, and returns it.

    The process stays on the CPUs of `options.threads` from then on.

    Raises:
      Refusal: there is no such run, it is damaged, or its data are not there.
    """
    options = _checked(options)
    of_machine = machine.cpus()
    cpus = sorted(os.sched_getaffinity(0))[: options.threads]
    os.sched_setaffinity(0, cpus)  # all that follows stays there, whichever runtime it is
    terminal.status("loading")
    with tensorflow_env.importing(logging.ERROR):
        import tensorflow as tf

        from dawnbench_tf.inference import serving
        from dawnbench_tf.training import devices

    loaded = serving.load(Path(options.model), options.data_dir, options.task)
    if options.batch_sizes and not loaded.data.fixed_shape:
        refuse("batch_sizes", options.batch_sizes, "questions are answered one at a time")
    task = loaded.recipe.task_row
    examples = loaded.served.examples
    if options.examples:
        examples = examples[: options.examples]
    candidates = _candidates(options, loaded)
    name, precision, runtime, latencies, score = _time(options, loaded, candidates, examples)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    timed = Timed(name, precision, options.threads, cpus, runtime.size, latencies, score, peak)
    here = devices.machine_of(tf.distribute.get_strategy(), of_machine)
    entry = _entry(options, loaded, timed, here)
    terminal.status("")
    terminal.say(_report(task, timed, entry.cost), sys.stdout)

    output = Path(options.output_dir or options.model)
    path, reasons = run_entry.write(output, entry)
    terminal.say(run_entry.describe_entry(task, path, reasons), sys.stdout)
    if options.batch_sizes:
        _sweep(options, loaded, timed, output)
    return entry


def _sweep(options, loaded, timed, output):
    """Times batches of the sizes that are asked for, in the runtime that was timed."""
    from dawnbench_tf.inference import batch_sizes

    rows = batch_sizes.sweep(
        loaded,
        timed.runtime,
        timed.precision,
        timed.threads,
        options.batch_sizes,
        terminal.status,
    )
    terminal.status("")
    title = f"{loaded.recipe.model}, {timed.runtime} {timed.precision}"
    batch_sizes.write(rows, title, output)
    terminal.say(batch_sizes.table(rows), sys.stdout)


def _time(options, loaded, candidates, examples):
    """The first of the candidates that reaches the threshold, or the last; its latencies, score."""
    from dawnbench_tf.inference import latency

    task = loaded.recipe.task_row
    for number, (name, precision, runtime) in enumerate(candidates, 1):

        def progress(done, of, name=name):
            terminal.status(f"{name}: pass {done + 1} of {of}, {len(examples):,} examples")

        try:
            latencies = latency.measure(
                runtime.call, examples, options.passes, options.seconds, progress
            )
        except Exception as error:  # of a runtime, for an example
            if number == len(candidates):
                refuse("runtime", name, runtimes.failure(error))
            terminal.say(f"{name}, {precision}: {runtimes.failure(error)}; the next is timed")
            continue
        score = loaded.score(latencies.outputs, len(examples))[task.metric]
        if score >= task.threshold or number == len(candidates):
            return name, precision, runtime, latencies, score
        why = f"{task.metric} {score:g} on the whole test, under {task.threshold:g}"
        terminal.say(f"{name}, {precision}: {why}; the next fastest is timed")


def _candidates(options, loaded):
    """What to time, by name, precision and model in it: the first that reaches the threshold."""
    from dawnbench_tf.inference import runtime_choice

    if options.runtime == "auto":
        task = loaded.recipe.task_row
        candidates = runtime_choice.compare(
            loaded, options.precision, options.threads, terminal.status
        )
        best = runtime_choice.best(candidates, task)
        terminal.status("")
        terminal.say(runtime_choice.table(candidates, best[0], task), sys.stdout)
        reaches = max(candidate.score for candidate in best) >= task.threshold
        best = best if reaches else best[:1]
        return [(candidate.name, candidate.precision, candidate.runtime) for candidate in best]
    name, precision = options.runtime, options.precision or "float32"
    terminal.status(f"building {name}, {precision}")
    return [(name, precision, runtimes.build(name, loaded.served, precision, options.threads))]


def _entry(options, loaded, timed, here):
    recipe = loaded.recipe
    facts = {
        **timed.latencies.facts(),
        "data": loaded.data.origin.facts(),
        "examples": timed.latencies.seconds.shape[1],
        "threads": timed.threads,
        "cpus": timed.cpus,
        "modelBytes": timed.model_bytes,
        "peakGiB": round(timed.peak_gib, 2),
    }
    latency_ms = timed.latencies.mean * 1e3
    timing = run_entry.Latency(timed.runtime, timed.precision, latency_ms, timed.score, facts)
    return run_entry.inference_entry(recipe, options.credits, here, timing)


def _report(task: Task, timed: Timed, cost: float | None) -> str:
    """What was measured, for people."""
    latencies, mean = timed.latencies, timed.latencies.mean * 1e3
    interval = latencies.interval() * 1e3
    percentiles = ", ".join(f"p{p} {latencies.percentile(p) * 1e3:.4g}" for p in (50, 90, 99))
    lines = [
        f"{timed.runtime}, {timed.precision}, {timed.threads} threads: "
        f"{mean:.4g} ms (± {interval:.2g}, 95 %) for one example; "
        f"{percentiles}; {1e3 / mean:,.0f} examples/s",
        f"{task.metric} {timed.score:.6g} of {task.threshold:g}, on the outputs that were timed",
        f"model {timed.model_bytes / 1e6:.2f} MB, process {timed.peak_gib:.2f} GiB at its peak; "
        f"the loop itself {latencies.overhead * 1e6:.2g} µs a call",
    ]
    if cost is not None:
        lines.append(f"{dollars(cost * 10_000)} for 10,000 examples")
    if not latencies.steady:
        lines.append(f"calls were not steady yet after {latencies.warm_up} of them; run it again")
    if latencies.noisy:
        share = interval / mean
        lines.append(f"too noisy to tell: ± {share:.0%}; stop other programs, or add --passes")
    return "\n".join(lines)


if __name__ == "__main__":
    flags.run(main, Options)
