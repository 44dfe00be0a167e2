"""Measures inference latency, cost and accuracy of a model.

    dawnbench infer --model=RUN_DIR [--runtime=litert] [--cost_per_hour=0.9]
    dawnbench infer --model=resnet50_v1_5 --weights=FILE --task=imagenet \\
        --data_dir=VAL

Each test example is timed alone. The accuracy is that of the timed outputs. The
entry is written to the run's folder; that of published weights to
infer/MODEL-FILE-DIGEST. Exit status: 0, or 1 for bad input.
"""

import math
import os
import resource
import signal
import sys
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from absl import logging

from dawnbench_tf import files, flags, machine, recipes, run_folder, terminal
from dawnbench_tf.inference import runtimes
from dawnbench_tf.inference.preprocessing import PREPROCESSINGS
from dawnbench_tf.inference.runtimes import PRECISIONS, RUNTIMES
from dawnbench_tf.recipe.options import Credits
from dawnbench_tf.refusals import refuse, shown
from dawnbench_tf.runs import run_entry
from dawnbench_tf.settings import Checked, documented, setting
from dawnbench_tf.submission import prices
from dawnbench_tf.submission.entry import Entry
from dawnbench_tf.tasks import TASKS
from dawnbench_tf.terminal import counted, dollars

__all__ = ["infer", "Options"]


@documented
@dataclass(frozen=True)
class Options(Checked):
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
    threads: int = setting(0, "number of threads, and of CPUs to run on; 0: all CPUs")
    passes: int = setting(3, "passes over the test set, at most", low=1)
    seconds: float = setting(120.0, "seconds after which no further pass starts")
    examples: int = setting(
        0, "time only N test examples, images evenly spaced; 0: all, as an entry requires"
    )
    batch_sizes: tuple[int, ...] = setting(
        (), "time batches of these sizes as well, e.g. 1,2,4 (images only)", low=1
    )
    output_dir: str = setting(
        "",
        "folder to write the entry to; default: the folder of --model, or infer/MODEL-FILE-DIGEST",
    )
    credits: Credits = Credits()


def main(options: Options, _: list[str]) -> None:
    infer(options)


def _check(options: Options) -> Options:
    """Checks the options without importing TensorFlow; returns them with defaults filled in."""
    path, task = Path(options.model), options.task
    if options.weights:
        variant = recipes.network("model", options.model)
        if not Path(options.weights).is_file():
            refuse("weights", options.weights, "is no file; should be published weights of --model")
        if task not in TASKS:
            text = "should be" if task else "is required with --weights:"
            refuse("task", task, f"{text} one of {', '.join(TASKS)}")
        if variant.inputs != TASKS[task].inputs:
            refuse("task", task, f"{options.model} takes {variant.inputs}")
        if options.preprocessing and variant.inputs != "images":
            refuse("preprocessing", options.preprocessing, "is for images")
    elif not options.model:
        refuse("model", "", "should be the --output_dir of a training run")
    elif options.preprocessing:
        refuse("preprocessing", options.preprocessing, "requires --weights; a run has its own")
    elif path.is_file():
        reason = (
            "is a file; models are not opened from files, which may hold code; name a run's "
            f"folder, or published weights: --model=NAME --weights={path}"
        )
        refuse("model", path, reason)
    elif not path.is_dir():
        refuse("model", path, "is no folder; should be the --output_dir of a training run")
    cpus = machine.cpus()
    if options.threads > cpus:
        refuse("threads", options.threads, f"should be at most the {cpus} CPUs of this machine")
    credits = prices.with_instance_price(options.credits)
    data_dir = options.data_dir
    if not data_dir and not options.weights:
        if data_dir := run_folder.owner_of(path).options.data_dir:
            terminal.say(f"reads --data_dir={shown(data_dir)}, as the training run did")
    return replace(options, credits=credits, threads=options.threads or cpus, data_dir=data_dir)


def infer(options: Options, data: Any = None) -> Entry:
    """Measures the latency of a run on its test set, and writes and returns its inference entry.

    With fewer `options.threads` than CPUs it binds the process to the first of them for the rest of
    its life, before TensorFlow starts its threads.

    Args:
      options: the flags of `dawnbench infer`.
      data: the examples of a run that was trained with `data`, as `train` takes them.

    Raises:
      Refusal: the folder holds no run or is damaged, the data set is not found, or TensorFlow has
        more threads in this process already.
    """
    options = _check(options)
    machine_cpus = machine.cpus()
    if options.threads < machine_cpus and (tensorflow := sys.modules.get("tensorflow")):
        try:
            tensorflow.config.threading.set_intra_op_parallelism_threads(options.threads)
        except RuntimeError:
            text = "TensorFlow runs with more in this process; call infer first, or in another one"
            refuse("threads", options.threads, text)
    cpus = sorted(os.sched_getaffinity(0))
    if options.threads < machine_cpus:  # a container with a quota may use any of the host's
        cpus = cpus[: options.threads]
    os.sched_setaffinity(0, cpus)  # inherited by all threads, whichever runtime starts them
    terminal.status("loading")
    with machine.importing(logging.ERROR):
        import tensorflow as tf

        from dawnbench_tf.inference import runtime_choice, serving
        from dawnbench_tf.training import strategies

    # The run or the published weights, and the test examples.
    task_name, data_dir, name = options.task, options.data_dir, options.preprocessing
    if options.weights:
        from dawnbench_tf.inference import published

        loaded = published.load(options.model, Path(options.weights), task_name, data_dir, name)
    else:
        loaded = serving.load(Path(options.model), data_dir, task_name, data)
    if options.batch_sizes and not loaded.data.fixed_shape:
        refuse("batch_sizes", options.batch_sizes, "is for images; questions run one at a time")
    tested, examples = loaded.data, loaded.served.examples
    recipe, task = tested.recipe, tested.recipe.task_row
    if options.examples:
        chosen, tested = tested.sample(options.examples)
        examples = examples[chosen]

    # The folder: the run's, or that of the weights. Files of different weights often have one name,
    # as model.safetensors.
    output = Path(options.output_dir or options.model)
    if options.weights and not options.output_dir:
        digest = loaded.facts["weights"]["sha256"]
        output = Path(f"infer/{options.model}-{Path(options.weights).stem}-{digest[:8]}")
    files.make_folder(output)  # before the measurements: they take minutes

    # The candidates, the fastest first.
    if options.runtime == "auto":
        compared = runtime_choice.compare(loaded, options.precision, options.threads)
        best = runtime_choice.select_accurate(compared, task, options.precision)
        terminal.status("")
        terminal.say(runtime_choice.format_table(compared, best[0], task), sys.stdout)
        candidates = [(c.name, c.precision, c.runtime) for c in best if c.runtime]
    else:
        name, precision = options.runtime, options.precision or "float32"
        terminal.status(f"building {name}, {precision}")
        runtime = runtimes.build(name, loaded.served, precision, options.threads)
        candidates = [(name, precision, runtime)]
    name, precision, runtime, latencies, score = runtime_choice.time_until_reached(
        tested, candidates, examples, options.passes, options.seconds
    )

    # The entry: figures, and what they were measured with.
    peak_gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    mean_ms = latencies.mean * 1e3
    facts = {
        "runtime": name,
        "runtimeVersion": import_module(RUNTIMES[name].packages[0]).__version__,
        "precision": precision,
        **latencies.facts(),
        "data": loaded.data.origin.facts(),
        "examples": latencies.seconds.shape[1],
        "threads": options.threads,
        "device": runtime.device,
        "cpus": cpus,
        "modelBytes": runtime.size,
        "peakGiB": round(peak_gib, 2),
        **loaded.facts,
    }
    strategy, on_cpu = tf.distribute.get_strategy(), runtime.device == "CPU"
    here = strategies.machine_of(strategy, machine_cpus, on_cpu)
    if options.threads < machine_cpus:  # else the entry would replace that of all CPUs
        here = here._replace(tag=f"{here.tag}-{counted(options.threads, 'thread')}")
    entry = run_entry.inference_entry(recipe, options.credits, here, mean_ms, score, facts)

    # The report.
    interval = latencies.interval() * 1e3  # infinite for one call
    both = ", of machine and examples" * (len(latencies.seconds) == 1)
    own_interval = f" (± {interval:.2g}, 95 %{both})" if math.isfinite(interval) else ""
    percentiles = ", ".join(f"p{p} {latencies.percentile(p) * 1e3:.4g}" for p in (50, 90, 99))
    lines = [
        f"{name}, {precision}, on the {runtime.device}, {counted(options.threads, 'thread')}: "
        f"{mean_ms:.4g} ms{own_interval} for one example; "
        f"{percentiles}; {1e3 / mean_ms:,.0f} examples/s",
        f"{task.metric} {score:.6g} of {task.threshold:g}, on the outputs that were timed",
        f"model {runtime.size / 1e6:.2f} MB, process {peak_gib:.2f} GiB at its peak; "
        f"the loop itself {latencies.overhead * 1e6:.2g} µs a call",
    ]
    if entry.cost is not None:
        lines.append(f"{dollars(entry.cost * 10_000)} for 10,000 examples")
    if not latencies.steady:
        lines.append(f"not steady after {latencies.warm_up} warm-up calls; run it again")
    if not own_interval:
        lines.append("one call has no interval; raise --examples or --passes")
    elif latencies.noisy:
        share = interval / mean_ms
        lines.append(f"too noisy: ± {share:.0%} of the mean; stop other programs or raise --passes")
    terminal.status("")
    terminal.say("\n".join(lines), sys.stdout, is_prose=True)

    path, reasons = run_entry.write(output, entry)
    terminal.say(run_entry.describe_entry(task, path, reasons), sys.stdout, is_prose=True)

    if not options.batch_sizes:
        return entry
    from dawnbench_tf.inference import batch_sizes  # brings matplotlib

    rows: list[batch_sizes.Row] = []
    try:
        sizes, threads = options.batch_sizes, options.threads
        for row in batch_sizes.sweep(loaded, name, precision, threads, sizes):
            rows.append(row)
    except KeyboardInterrupt as interrupt:
        raise KeyboardInterrupt(
            *interrupt.args[:1] or [signal.SIGINT], f"the entry {path} stays"
        ) from None
    finally:  # a size may fail: the rows before it are kept
        terminal.status("")
        if rows:
            batch_sizes.write(rows, f"{recipe.model}, {name} {precision}", output)
            terminal.say(batch_sizes.format_table(rows), sys.stdout)
    return entry


if __name__ == "__main__":
    flags.run(
        main, Options, tables={"instance": prices.format_table}, interrupted="no entry was written"
    )
