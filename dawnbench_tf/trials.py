"""Which runtime is the fastest that keeps the accuracy: all that are here, tried on a sample."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from dawnbench_tf import hardware, latency, runtimes
from dawnbench_tf.runtimes import NUMERICS, RUNTIMES, Runtime
from dawnbench_tf.settings import Refusal, one_line

ROUNDS = 3  # over the sample, one runtime after the other in each
LOSS = 0.002  # of a perfect metric: what may be lost against Keras's own float32


class Trial(NamedTuple):
    """One runtime in one precision; without `made`, `reason` says why it could not be tried."""

    runtime: str
    numerics: str
    made: Runtime | None = None
    reason: str = ""
    p50: float = 0.0  # seconds
    p99: float = 0.0
    metric: float = 0.0  # on the sample
    same: float = 0.0  # share of examples answered as Keras does


def run(serving, numerics: str, threads: int, sample: int, progress=print) -> list[Trial]:
    """Tries every runtime on the first `sample` examples of the test, in turn, the fastest first.

    Args:
      serving: a `serving.Serving`.
      numerics: the only precision to try; "" tries all.
      threads: of each runtime.
      sample: examples.
      progress: told what is being done.
    """
    served = serving.served
    examples = served.examples[:sample]
    trials = []
    for name, precision in _candidates(numerics):
        progress(f"building {name}, {precision}")
        trials.append(_built(name, precision, served, threads))
    times = {number: [] for number, trial in enumerate(trials) if trial.made}
    outputs = {}
    for turn in range(ROUNDS):
        progress(f"round {turn + 1} of {ROUNDS}: {len(examples)} examples through each runtime")
        for number in times:
            found = latency.measure(trials[number].made.call, examples, passes=1)
            times[number].append(found.seconds)
            outputs[number] = found.outputs
    keras = next(number for number, trial in enumerate(trials) if trial.runtime == "keras")
    for number, seconds in times.items():
        trials[number] = trials[number]._replace(
            p50=float(np.percentile(seconds, 50)),
            p99=float(np.percentile(seconds, 99)),
            metric=serving.score(outputs[number], len(examples))[serving.task.metric],
            same=_same(outputs[number], outputs[keras]),
        )
    return sorted(trials, key=lambda trial: (trial.made is None, trial.p50))


def best(trials: list[Trial], task) -> Trial:
    """The fastest that keeps the accuracy of Keras in float32."""
    keras = next(trial for trial in trials if trial.runtime == "keras")
    least = keras.metric - LOSS * task.highest - 1e-9
    return next(trial for trial in trials if trial.made and trial.metric >= least)


def table(trials: list[Trial], chosen: Trial, task) -> str:
    """All that was tried, for people."""
    lines = [f"  runtime   numerics   p50 ms   p99 ms  {task.metric:>12}   same  MB"]
    for trial in trials:
        mark = "*" if trial is chosen else " "
        head = f"{mark} {trial.runtime:9} {trial.numerics:9}"
        if trial.made:
            times = f"{trial.p50 * 1e3:8.3f} {trial.p99 * 1e3:8.3f}"
            what = f"{trial.metric:13.5g} {trial.same:6.1%} {trial.made.size / 1e6:6.2f}"
            lines.append(f"{head} {times} {what}")
        else:
            lines.append(f"{head} not tried: {trial.reason}")
    return "\n".join(lines)


def _candidates(numerics) -> Iterator[tuple[str, str]]:
    yield "keras", "float32"  # what the others are held against
    for precision in (numerics,) if numerics else NUMERICS:
        if precision == "bfloat16" and not numerics and not hardware.has_bfloat16():
            continue
        for name, kind in RUNTIMES.items():
            if name != "keras" and precision in kind.numerics:
                yield name, precision


def _built(name, numerics, served, threads):
    try:
        return Trial(name, numerics, runtimes.build(name, served, numerics, threads))
    except Refusal as refusal:
        return Trial(name, numerics, reason=str(refusal).partition(": ")[2])
    except Exception as error:  # of a converter, for a model it can't convert: told in the table
        return Trial(name, numerics, reason=f"{type(error).__name__}: {one_line(error, 80)}")


def _same(outputs, of_keras):
    """Share of examples whose best class, or whose best first and last word, are Keras's."""
    pairs = zip(outputs, of_keras, strict=True)
    return float(np.mean([np.array_equal(a.argmax(-1), b.argmax(-1)) for a, b in pairs]))
