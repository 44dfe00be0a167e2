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

from absl import app, logging

from dawnbench_tf import costs, options, run_entry, tasks
from dawnbench_tf.settings import Refusal, check, refuse, setting

RUNTIMES = ("auto", "keras", "function", "xla", "litert", "onnx", "openvino")
SAMPLE = {"images": 200, "questions": 40}  # examples on which --runtime=auto decides


@dataclass(frozen=True)
class Options:
    """How a run is timed."""

    model: str = setting("", "--output_dir of the training run")
    data_dir: str = setting("", "folder of the data set, or its archive")
    task: str = setting("", "refuse a run of any other task", choices=("", *tasks.TASKS))
    runtime: str = setting("auto", "what runs the model; auto tries all", choices=RUNTIMES)
    numerics: str = setting(
        "",
        "precision; default: float32, auto tries all",
        choices=("", "float32", "bfloat16", "int8"),
    )
    threads: int = setting(0, "threads, and CPUs to stay on; 0: all there are", low=0)
    passes: int = setting(3, "passes over the test, at most", low=1)
    seconds: float = setting(120.0, "seconds after which no further pass begins", low=0)
    examples: int = setting(0, "time only the first of the test; 0: all, as the rules want", low=0)
    batch_sizes: tuple[int, ...] = setting((), "time batches too, of these sizes: 1,2,4", low=1)
    instance: str = setting("", "machine whose price to take; ? lists them")
    cost_per_hour: float | None = setting(None, "on-demand price, USD per hour", low=0)
    output_dir: str = setting("", "folder to write the entry to; default: that of --model")
    author: str = setting("anonymous", "author of the entry")
    author_email: str = setting("", "author's e-mail address in the entry")
    hardware: str = setting("", "hardware as the entry states it; default: what is found")
    hardware_tag: str = setting("", "hardware in the entry's file name; default: what is found")

    def __post_init__(self):
        check(self)


def main(_):
    signal.signal(signal.SIGINT, _interrupt)
    try:
        chosen = options.read_as(Options)
        if chosen.instance == "?":
            print(costs.table())
            return 0
        return infer(_checked(chosen))
    except Refusal as refusal:
        options.exit_with(str(refusal))


def _interrupt(number, frame):
    """Ends at once: there is nothing to save, and TensorFlow may swallow an exception."""
    print("infer.py: interrupted; no entry was written", file=sys.stderr, flush=True)
    os._exit(128 + number)


def _checked(chosen):
    """The options with price and threads settled, as far as can be told without TensorFlow."""
    if not chosen.model:
        refuse("model", "", "should be the --output_dir of a training run")
    path = Path(chosen.model)
    if path.is_file():
        why = (
            "is a file; models are not opened from files, which may hold code; name a run's folder"
        )
        refuse("model", path, why)
    if not path.is_dir():
        refuse("model", path, "is no folder; should be the --output_dir of a training run")
    cpus = len(os.sched_getaffinity(0))
    if chosen.threads > cpus:
        refuse("threads", chosen.threads, f"should be at most the {cpus} CPUs of this machine")
    if chosen.instance:
        chosen = replace(chosen, cost_per_hour=_price(chosen))
    return replace(chosen, threads=chosen.threads or cpus)


def _price(chosen):
    if chosen.cost_per_hour is not None:
        refuse("instance", chosen.instance, "and --cost_per_hour both give a price; choose one")
    if chosen.instance not in costs.instances():
        refuse("instance", chosen.instance, "is not known; --instance=? lists those that are")
    row = costs.instances()[chosen.instance]
    print(f"{row.name}: ${row.usd_per_hour:g} per hour on {row.date} ({row.source})")
    return row.usd_per_hour


def infer(chosen: Options) -> int:
    """Times the run as `chosen` says and writes its entry. Returns the exit status."""
    cpus = sorted(os.sched_getaffinity(0))[: chosen.threads]
    os.sched_setaffinity(0, cpus)  # all that follows stays there, whichever runtime it is
    os.environ["TF_USE_LEGACY_KERAS"] = "1"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    _say("loading")
    from dawnbench_tf import batches, hardware, latency, runtimes, serving, strategies, trials
    from dawnbench_tf.options import RunOptions

    logging.set_verbosity(logging.ERROR)
    found = serving.load(Path(chosen.model), chosen.data_dir, chosen.task)
    strategy = strategies.build(RunOptions(), found.recipe)
    served, task = found.served, found.task
    name, numerics = chosen.runtime, chosen.numerics or "float32"
    if name == "auto":
        tried = trials.run(found, chosen.numerics, chosen.threads, SAMPLE[task.kind], _say)
        best = trials.best(tried, task)
        _say("")
        print(trials.table(tried, best, task))
        name, numerics, runtime = best.runtime, best.numerics, best.made
    else:
        _say(f"building {name}, {numerics}")
        runtime = runtimes.build(name, served, numerics, chosen.threads)
    examples = served.examples[: chosen.examples or None]
    timed = latency.measure(
        runtime.call,
        examples,
        chosen.passes,
        chosen.seconds,
        lambda done, of: _say(f"{name}: pass {done + 1} of {of}, {len(examples):,} examples"),
    )
    score = found.score(timed.outputs, len(examples))
    misc = {"runtime": name, "numerics": numerics, "threads": chosen.threads, "cpus": cpus}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    misc |= {"modelBytes": runtime.size, "peakGiB": round(peak, 2)}
    described = hardware.described(strategy)
    entry = run_entry.inference(task, found.recipe, chosen, timed, score, described, misc)
    _say("")
    print(_report(entry, timed, task))
    output = Path(chosen.output_dir or chosen.model)
    if chosen.batch_sizes:
        print(batches.sweep(found, name, numerics, chosen, output, _say))
    partial = len(examples) < len(served.examples)
    why = f"only {len(examples)} of {len(served.examples)} examples were timed"
    path, reasons = run_entry.write(output, entry, (why,) if partial else ())
    print(run_entry.outcome(task, path, reasons))
    return 0


def _report(entry, timed, task):
    """What was measured, for people."""
    misc, milliseconds = entry.misc, entry.latency
    percentiles = ", ".join(f"p{p} {timed.percentile(p) * 1e3:.4g}" for p in (50, 90, 99))
    lines = [
        f"{misc['runtime']}, {misc['numerics']}, {misc['threads']} threads: "
        f"{milliseconds:.4g} ms (± {misc['confidenceMs']:.2g}, 95 %) for one example; "
        f"{percentiles}; {1e3 / milliseconds:,.0f} examples/s",
        f"{task.metric} {entry.metric:.6g} of {task.threshold:g}, on the outputs that were timed",
        f"model {misc['modelBytes'] / 1e6:.2f} MB, process {misc['peakGiB']} GiB at its peak; "
        f"the loop itself {misc['loopOverheadMs'] * 1e3:.2g} µs a call",
    ]
    if entry.cost is not None:
        lines.append(f"${entry.cost * 10_000:.4g} for 10,000 examples")
    if timed.noisy:
        share = misc["confidenceMs"] / milliseconds
        lines.append(f"too noisy to tell: ± {share:.0%}; stop other programs, or add --passes")
    return "\n".join(lines)


def _say(text):
    """A line that the next one replaces, on a terminal; elsewhere a line."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
    elif text:
        print(text, file=sys.stderr)


if __name__ == "__main__":
    options.define_for(Options)
    app.run(main, flags_parser=options.parse)
