"""Measures inference latency, cost and accuracy of a model.

    dawnbench infer --model=RUN_DIR [--runtime=litert] [--cost_per_hour=0.9]
    dawnbench infer --model=resnet50_v1_5 --weights=FILE --task=imagenet \\
        --data_dir=VAL

Each test example is timed alone. The accuracy is that of the timed outputs. The
entry is written to the run's folder; that of published weights to
infer/MODEL-FILE-DIGEST. Exit status: 0, or 1 for bad input.
"""

import os
import resource
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from absl import logging

from dawnbench_tf import flags, machine, runs, tensorflow_env, terminal
from dawnbench_tf.inference import runtimes, weights_file
from dawnbench_tf.inference.preprocessing import PREPROCESSINGS
from dawnbench_tf.inference.runtimes import PRECISIONS, RUNTIMES
from dawnbench_tf.options import Credits
from dawnbench_tf.refusals import refuse, shown
from dawnbench_tf.runs import run_entry
from dawnbench_tf.settings import check, setting
from dawnbench_tf.submission import prices
from dawnbench_tf.submission.entry import Entry
from dawnbench_tf.tasks import Task
from dawnbench_tf.terminal import dollars

if TYPE_CHECKING:
    from dawnbench_tf.inference.serving import Serving

__all__ = ["infer", "Options"]


@dataclass(frozen=True)
class Options:
    """Options of `infer`: the run, the runtime, and how long it is timed.

    Attributes:
      credits: author, hardware and price that the entry states.
    """

    model: str = setting(
        "", "--output_dir of the training run; with --weights, a model's name (`dawnbench models`)"
    )
    weights: str = setting(
        "",
        "file of published weights of --model: .pth, .safetensors, .h5 or a checkpoint's .index; a "
        "BERT's has vocab.txt beside it",
    )
    preprocessing: str = setting(
        "",
        "with --weights: preprocessing of images, by publisher of the weights; default: akamaster "
        "for CIFAR-10, keras_caffe or (v2) keras_tf for .h5, else torchvision",
        choices=("", *PREPROCESSINGS),
    )
    data_dir: str = setting("", "folder of the data set, or its archive; default: the run's")
    task: str = setting(
        "",
        "refuse runs of any other task than this, e.g. cifar10; with --weights, the task to answer",
    )
    runtime: str = setting(
        "auto",
        "inference runtime; auto tries all and takes the fastest that keeps the accuracy",
        choices=("auto", *RUNTIMES),
    )
    precision: str = setting(
        "",
        "precision of the runtime; default: float32, or with --runtime=auto all",
        choices=("", *PRECISIONS),
    )
    threads: int = setting(0, "number of threads, and of CPUs to run on; 0: all CPUs", low=0)
    passes: int = setting(3, "passes over the test set, at most", low=1)
    seconds: float = setting(120.0, "seconds after which no further pass starts", low=0)
    examples: int = setting(
        0, "time only the first N test examples; 0: all, as an entry requires", low=0
    )
    batch_sizes: tuple[int, ...] = setting(
        (), "time batches of these sizes as well, e.g. 1,2,4 (images only)", low=1
    )
    output_dir: str = setting(
        "",
        "folder to write the entry to; default: the folder of --model, or infer/MODEL-FILE-DIGEST",
    )
    credits: Credits = Credits()

    def __post_init__(self) -> None:
        check(self)


class Timed(NamedTuple):
    """The measurements of a model in a runtime."""

    runtime: str
    precision: str
    threads: int
    cpus: list[int]  # CPUs that the process was bound to
    model_bytes: int  # size of the weights in the runtime's format
    latencies: Any  # `inference.latency.Latencies`
    score: float  # of the timed outputs
    peak_gib: float  # peak memory of the process


def main(options: Options, _: list[str]) -> None:
    infer(options)


def _check(options: Options) -> Options:
    """Checks the options without importing TensorFlow; returns them with defaults filled in."""
    if options.weights:
        weights_file.check(options.model, options.weights, options.task)
    else:
        _check_folder(options)
    cpus = machine.cpus()
    if options.threads > cpus:
        refuse("threads", options.threads, f"should be at most the {cpus} CPUs of this machine")
    credits, line = prices.with_instance_price(options.credits)
    if line:
        terminal.say(line, sys.stdout)
    data_dir = options.data_dir
    if not data_dir and not options.weights:
        data_dir = runs.options_of(options.model).data_dir
        if data_dir:
            terminal.say(f"reads --data_dir={shown(data_dir)}, as the training run did")
    return replace(options, credits=credits, threads=options.threads or cpus, data_dir=data_dir)


def _check_folder(options: Options) -> None:
    if not options.model:
        refuse("model", "", "should be the --output_dir of a training run")
    if options.preprocessing:
        refuse("preprocessing", options.preprocessing, "requires --weights; a run has its own")
    path = Path(options.model)
    if path.is_file():
        reason = (
            "is a file; models are not opened from files, which may hold code; name a run's "
            f"folder, or published weights: --model=NAME --weights={path}"
        )
        refuse("model", path, reason)
    if not path.is_dir():
        refuse("model", path, "is no folder; should be the --output_dir of a training run")


def infer(options: Options, data: Any = None) -> Entry:
    """Measures the latency of a run on its test set, and writes and returns its inference entry.

    With fewer `options.threads` than CPUs it binds the process to the first of them for the rest of
    its life.

    Args:
      options: the flags of `dawnbench infer`.
      data: the examples of a run that was trained with `data`, as `train` takes them.

    Raises:
      Refusal: the folder holds no run or is damaged, or the data set is not found.
    """
    options = _check(options)
    machine_cpus = machine.cpus()
    cpus = sorted(os.sched_getaffinity(0))
    if options.threads < machine_cpus:  # a container with a quota may use any of the host's
        cpus = cpus[: options.threads]
    os.sched_setaffinity(0, cpus)  # inherited by all threads, whichever runtime starts them
    terminal.status("loading")
    with tensorflow_env.importing(logging.ERROR):
        import tensorflow as tf

        from dawnbench_tf.inference import runtime_choice
        from dawnbench_tf.training import strategies

    loaded = _load(options, data)
    if options.batch_sizes and not loaded.data.fixed_shape:
        refuse("batch_sizes", options.batch_sizes, "is for images; questions run one at a time")
    task = loaded.recipe.task_row
    examples = loaded.served.examples
    if options.examples:
        examples = examples[: options.examples]
    candidates = _candidates(options, loaded)
    name, precision, runtime, latencies, score = runtime_choice.time_until_reached(
        loaded, candidates, examples, options.passes, options.seconds
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    timed = Timed(name, precision, options.threads, cpus, runtime.size, latencies, score, peak)
    here = strategies.machine_of(tf.distribute.get_strategy(), machine_cpus)
    entry = _make_entry(options, loaded, timed, here)
    terminal.status("")
    terminal.say(_format_report(task, timed, entry.cost), sys.stdout)

    output = _output_folder(options, loaded)
    path, reasons = run_entry.write(output, entry)
    terminal.say(run_entry.describe_entry(task, path, reasons), sys.stdout)
    if options.batch_sizes:
        _time_batches(options, loaded, timed, output)
    return entry


def _output_folder(options: Options, loaded: "Serving") -> Path:
    """Returns the folder of the entry: --output_dir, or one of the run's or the weights'."""
    digest = loaded.facts.get("weights", {}).get("sha256", "")
    return Path(options.output_dir or weights_file.folder(options.model, options.weights, digest))


def _load(options: Options, data: Any) -> "Serving":
    """Loads the run or the published weights, and the examples."""
    from dawnbench_tf.inference import published, serving

    if not options.weights:
        return serving.load(Path(options.model), options.data_dir, options.task, data)
    weights, name = Path(options.weights), options.preprocessing
    return published.load(options.model, weights, options.task, options.data_dir, name)


def _time_batches(options: Options, loaded: "Serving", timed: Timed, output: Path) -> None:
    """Times batches of `options.batch_sizes` in the timed runtime."""
    from dawnbench_tf.inference import batch_sizes

    name, precision, rows = timed.runtime, timed.precision, list[batch_sizes.Row]()
    sizes = options.batch_sizes
    try:
        for row in batch_sizes.sweep(
            loaded, name, precision, timed.threads, sizes, terminal.status
        ):
            rows.append(row)
    finally:  # a size may fail: the rows before it are kept
        terminal.status("")
        if rows:
            batch_sizes.write(rows, f"{loaded.recipe.model}, {name} {precision}", output)
            terminal.say(batch_sizes.format_table(rows), sys.stdout)


def _candidates(options: Options, loaded: "Serving") -> list[Any]:
    """Returns (name, precision, runtime) of the candidates to time, the fastest first.

    With --runtime=auto: those that keep Keras's accuracy on a sample, or only the fastest of these
    if none reaches the threshold there.
    """
    from dawnbench_tf.inference import runtime_choice

    if options.runtime == "auto":
        task = loaded.recipe.task_row
        candidates = runtime_choice.compare(
            loaded, options.precision, options.threads, terminal.status
        )
        best = runtime_choice.select_accurate(candidates, task, options.precision)
        terminal.status("")
        terminal.say(runtime_choice.format_table(candidates, best[0], task), sys.stdout)
        reaches = max(candidate.score for candidate in best) >= task.threshold
        best = best if reaches else best[:1]
        return [(candidate.name, candidate.precision, candidate.runtime) for candidate in best]
    name, precision = options.runtime, options.precision or "float32"
    terminal.status(f"building {name}, {precision}")
    return [(name, precision, runtimes.build(name, loaded.served, precision, options.threads))]


def _make_entry(options: Options, loaded: "Serving", timed: Timed, here: machine.Machine) -> Entry:
    recipe = loaded.recipe
    facts = {
        **timed.latencies.facts(),
        "data": loaded.data.origin.facts(),
        "examples": timed.latencies.seconds.shape[1],
        "threads": timed.threads,
        "cpus": timed.cpus,
        "modelBytes": timed.model_bytes,
        "peakGiB": round(timed.peak_gib, 2),
        **loaded.facts,
    }
    latency_ms = timed.latencies.mean * 1e3
    latency = run_entry.Latency(timed.runtime, timed.precision, latency_ms, timed.score, facts)
    return run_entry.inference_entry(recipe, options.credits, here, latency)


def _format_report(task: Task, timed: Timed, cost: float | None) -> str:
    """Formats the measurements as text."""
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
        lines.append(f"not steady after {latencies.warm_up} warm-up calls; run it again")
    if latencies.noisy:
        share = interval / mean
        lines.append(f"too noisy: ± {share:.0%} of the mean; stop other programs or raise --passes")
    return "\n".join(lines)


if __name__ == "__main__":
    flags.run(
        main,
        Options,
        tables={"instance": prices.format_table},
        interrupted="no entry was written",
    )
