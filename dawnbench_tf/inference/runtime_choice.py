"""Which runtime is the fastest that keeps the accuracy: all that are here, tried on a sample."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from dawnbench_tf import machine
from dawnbench_tf.inference import latency, runtimes
from dawnbench_tf.inference.runtimes import PRECISIONS, RUNTIMES
from dawnbench_tf.inference.served import Runtime, Served
from dawnbench_tf.inference.serving import Serving
from dawnbench_tf.refusals import Refusal, refuse
from dawnbench_tf.tasks import Task

ROUNDS = 3  # over the sample, one runtime after the other in each
TOO_SLOW = 100  # times the fastest of the first round: timed in no later one
LOSS = 0.002  # of a perfect metric: what may be lost against Keras's own float32


class Candidate(NamedTuple):
    """A runtime in a precision; without `runtime`, `reason` says why it could not be tried."""

    name: str
    precision: str
    runtime: Runtime | None = None
    reason: str = ""
    p50: float = 0.0  # seconds
    p99: float = 0.0
    score: float = 0.0  # on the sample
    agreement: float = 0.0  # share of examples answered as Keras does
    rounds: int = ROUNDS  # that it was timed in


def compare(
    serving: Serving, precision: str, threads: int, progress: Callable[[str], None] = print
) -> list[Candidate]:
    """Tries every runtime on the first examples of the test, in turn; the fastest comes first.

    Args:
      serving: the run.
      precision: the only one to try; "" tries all.
      threads: of each runtime.
      progress: told what is being done.

    Raises:
      Refusal: Keras itself can't run the model.
    """
    examples = serving.served.examples[: serving.data.sample_size]
    candidates = []
    for name, of_candidate in _names(precision):
        progress(f"building {name}, {of_candidate}")
        candidates.append(_build(name, of_candidate, serving.served, threads))
    built = {index: c.runtime for index, c in enumerate(candidates) if c.runtime}
    seconds: dict[int, list[np.ndarray]] = {index: [] for index in built}
    outputs: dict[int, list[np.ndarray]] = {}
    for turn in range(ROUNDS):
        timed = [index for index in built if not turn or index not in _too_slow(seconds)]
        for place, index in enumerate(timed, 1):
            of_round = f"round {turn + 1} of {ROUNDS}, runtime {place} of {len(timed)}"
            candidate = candidates[index]
            progress(f"{of_round}: {candidate.name}, {candidate.precision}")
            try:
                latencies = _measured(built[index], examples)
            except Refusal as refusal:
                candidates[index] = candidate._replace(runtime=None, reason=str(refusal))
                del built[index], seconds[index]
                continue
            seconds[index].append(latencies.seconds)
            outputs[index] = latencies.outputs
    keras = _keras(candidates)
    metric = serving.recipe.task_row.metric
    for index, of_rounds in seconds.items():
        candidates[index] = candidates[index]._replace(
            p50=float(np.percentile(of_rounds, 50)),
            p99=float(np.percentile(of_rounds, 99)),
            score=serving.score(outputs[index], len(examples))[metric],
            agreement=agreement(outputs[index], outputs[keras]),
            rounds=len(of_rounds),
        )
    return sorted(candidates, key=lambda candidate: (candidate.runtime is None, candidate.p50))


def _measured(runtime, examples):
    try:
        return latency.measure(runtime.call, examples, 1, warm_up_seconds=latency.BRIEFLY)
    except Exception as error:  # of a runtime, for an example: told in the table
        raise Refusal(runtimes.failure(error)) from None


def _keras(candidates):
    """Index of Keras's own float32. Raises Refusal if it failed: it is what others are held to."""
    index = [candidate.name for candidate in candidates].index("keras")
    if candidates[index].runtime is None:
        refuse("runtime", "keras", candidates[index].reason)
    return index


def _too_slow(seconds):
    """Indices of runtimes that took TOO_SLOW times as long as the fastest in the first round."""
    medians = {index: float(np.median(rounds[0])) for index, rounds in seconds.items()}
    return {index for index in medians if medians[index] >= TOO_SLOW * min(medians.values())}


def best(candidates: list[Candidate], task: Task) -> list[Candidate]:
    """Those that keep the accuracy of Keras in float32 on the sample, the fastest first."""
    keras = next(candidate for candidate in candidates if candidate.name == "keras")
    least = keras.score - LOSS * task.highest - 1e-9
    return [candidate for candidate in candidates if candidate.runtime and candidate.score >= least]


def table(candidates: list[Candidate], chosen: Candidate, task: Task) -> str:
    """All that was tried, for people."""
    lines = [f"  runtime   precision  p50 ms   p99 ms  {task.metric:>12}   same  MB"]
    for candidate in candidates:
        mark = "*" if candidate is chosen else " "
        head = f"{mark} {candidate.name:9} {candidate.precision:9}"
        if candidate.runtime:
            times = f"{candidate.p50 * 1e3:8.3f} {candidate.p99 * 1e3:8.3f}"
            size = f"{candidate.runtime.size / 1e6:6.2f}"
            once = f"  timed in {candidate.rounds} of {ROUNDS} rounds: too slow"
            lines.append(
                f"{head} {times} {candidate.score:13.5g} {candidate.agreement:6.1%} {size}"
                f"{once if candidate.rounds < ROUNDS else ''}"
            )
        else:
            lines.append(f"{head} not tried: {candidate.reason}")
    return "\n".join(lines)


def _names(precision) -> Iterator[tuple[str, str]]:
    yield "keras", "float32"  # what the others are held against
    for of_candidate in (precision,) if precision else PRECISIONS:
        if of_candidate == "bfloat16" and not precision and not machine.has_bfloat16():
            continue
        for name, row in RUNTIMES.items():
            if name != "keras" and of_candidate in row.precisions:
                yield name, of_candidate


def _build(name: str, precision: str, served: Served, threads: int) -> Candidate:
    try:
        return Candidate(name, precision, runtimes.build(name, served, precision, threads))
    except Refusal as refusal:
        return Candidate(name, precision, reason=str(refusal).partition(": ")[2])


def agreement(outputs: list[np.ndarray], of_keras: list[np.ndarray]) -> float:
    """Share of examples whose best class, or whose best first and last token, are Keras's."""
    pairs = zip(outputs, of_keras, strict=True)
    return float(np.mean([np.array_equal(a.argmax(-1), b.argmax(-1)) for a, b in pairs]))
