"""Chooses the fastest runtime that keeps the accuracy, by timing all runtimes on a sample."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from dawnbench_tf import machine, terminal
from dawnbench_tf.data.dataset import Data, Example
from dawnbench_tf.inference import latency, runtimes
from dawnbench_tf.inference.latency import Latencies
from dawnbench_tf.inference.runtimes import PRECISIONS, RUNTIMES
from dawnbench_tf.inference.serving import Runtime, Serving
from dawnbench_tf.refusals import Refusal, refuse
from dawnbench_tf.tasks import Task

ROUNDS = 3  # rounds over the sample; each times all runtimes in turn
TOO_SLOW = 100  # runtimes this many times slower than the fastest are timed in round 1 only
LOSS = 0.002  # allowed loss against Keras in float32, as a share of the metric's maximum


class Candidate(NamedTuple):
    """A runtime in a precision, and its measurements."""

    name: str
    precision: str
    runtime: Runtime | None = None  # None if it can't run the model
    reason: str = ""  # why it can't
    p50: float = 0.0  # latency percentiles in seconds
    p99: float = 0.0
    score: float = 0.0  # on the sample
    agreement: float = 0.0  # share of examples with the same answer as Keras in float32
    rounds: int = ROUNDS  # number of rounds in which it was timed


def compare(serving: Serving, precision: str, threads: int) -> list[Candidate]:
    """Times every runtime, in one precision or all (""), on a sample of the test examples."""
    # Returns all candidates, the fastest first; those that can't run the model come last.
    chosen, data = serving.data.sample()
    examples = list(serving.served.examples[chosen])
    candidates = []
    for name, candidate_precision in _candidate_names(precision):
        terminal.status(f"building {name}, {candidate_precision}")
        candidate = Candidate(name, candidate_precision)
        try:
            runtime = runtimes.build(name, serving.served, candidate_precision, threads)
            candidates.append(candidate._replace(runtime=runtime))
        except Refusal as refusal:
            candidates.append(candidate._replace(reason=str(refusal).partition(": ")[2]))
    # Keyed by index in `candidates`; a runtime that fails at an example leaves `built`, `seconds`.
    built = {index: c.runtime for index, c in enumerate(candidates) if c.runtime}
    seconds: dict[int, list[np.ndarray]] = {index: [] for index in built}
    outputs: dict[int, list[np.ndarray]] = {}
    for turn in range(ROUNDS):
        timed = [*built]
        if turn:
            medians = {index: float(np.median(seconds[index][0])) for index in built}
            timed = [n for n in built if medians[n] < TOO_SLOW * min(medians.values())]
        for position, index in enumerate(timed, 1):
            candidate, part = candidates[index], f"round {turn + 1} of {ROUNDS}, runtime {position}"
            terminal.status(f"{part} of {len(timed)}: {candidate.name}, {candidate.precision}")
            try:
                latencies = latency.measure(
                    built[index].call, examples, 1, warm_up_seconds=latency.SHORT_WARM_UP_SECONDS
                )
            except Refusal:
                raise  # an example can't be read
            except Exception as error:  # a runtime may raise anything; the table shows the reason
                reason = runtimes.describe_failure(error)
                candidates[index] = candidate._replace(runtime=None, reason=reason)
                del built[index], seconds[index]
                continue
            seconds[index].append(latencies.seconds)
            outputs[index] = latencies.outputs
    if candidates[0].runtime is None:  # Keras in float32, the reference
        refuse("runtime", "keras", candidates[0].reason)
    metric = serving.data.recipe.task_row.metric
    answers = {index: data.join(own) for index, own in outputs.items() if index in built}
    for index, round_seconds in seconds.items():
        candidates[index] = candidates[index]._replace(
            p50=float(np.percentile(round_seconds, 50)),
            p99=float(np.percentile(round_seconds, 99)),
            score=data.score(answers[index])[metric],
            agreement=agreement(answers[index], answers[0]),
            rounds=len(round_seconds),
        )
    return sorted(candidates, key=lambda candidate: (candidate.runtime is None, candidate.p50))


def select_accurate(
    candidates: list[Candidate], task: Task, precision: str = ""
) -> list[Candidate]:
    """Returns the candidates to time on the whole test set, the fastest first."""
    # They score on the sample as Keras in float32 does, minus LOSS.
    keras = next(candidate for candidate in candidates if candidate.name == "keras")
    least = keras.score - LOSS * task.highest - 1e-9
    accurate = [c for c in candidates if c.runtime and c.score >= least]
    accurate = [c for c in accurate if precision in ("", c.precision)]
    if not accurate:
        text = f"no runtime keeps Keras's {task.metric} {keras.score:g} on the sample"
        refuse("precision", precision, f"{text}; without this flag the fastest that does is timed")
    return accurate


def time_until_reached(
    data: Data,
    candidates: Sequence[tuple[str, str, Runtime]],
    examples: Sequence[Example],
    passes: int,
    seconds: float,
) -> tuple[str, str, Runtime, Latencies, float]:
    """Times candidates (name, precision, runtime) until one reaches the threshold in the test."""
    # Returns name, precision, runtime, latencies and score of that one, or of the one with the best
    # score, the fastest of several. `examples` are those of `data`.
    task, timed = data.recipe.task_row, list[tuple[str, str, Runtime, Latencies, float]]()
    for number, (name, precision, runtime) in enumerate(candidates, 1):

        def progress(done: int, total: int, name: str = name) -> None:
            terminal.status(f"{name}: pass {done + 1} of {total}, {len(examples):,} examples")

        try:
            latencies = latency.measure(runtime.call, examples, passes, seconds, progress)
        except Refusal:
            raise  # an example can't be read
        except Exception as error:  # a runtime may raise anything
            reason = runtimes.describe_failure(error)
            if number == len(candidates) and not timed:
                refuse("runtime", name, reason)
        else:
            score = data.score(data.join(latencies.outputs))[task.metric]
            timed.append((name, precision, runtime, latencies, score))
            if score >= task.threshold:
                return timed[-1]
            if precision == "float32":
                break  # the outputs of the others are equal, or further from Keras's
            reason = f"{task.metric} {score:g} on the whole test, under {task.threshold:g}"
        if number < len(candidates):
            terminal.say(f"{name}, {precision}: {reason}; the next fastest is timed", is_prose=True)
    return max(timed, key=lambda item: item[-1])  # the first of several


def format_table(candidates: list[Candidate], chosen: Candidate, task: Task) -> str:
    """Formats all candidates as a text table; * marks the chosen one."""
    lines = [f"  runtime   precision  p50 ms   p99 ms  {task.metric:>12}   same     MB on"]
    notes = []
    for candidate in candidates:
        runtime = candidate.runtime
        if runtime:
            lines.append(
                f"{'*' if candidate is chosen else ' '} {candidate.name:9} {candidate.precision:9} "
                f"{candidate.p50 * 1e3:8.3f} {candidate.p99 * 1e3:8.3f} {candidate.score:13.5g} "
                f"{candidate.agreement:6.1%} {runtime.size / 1e6:6.2f} {runtime.device}"
            )
        if not runtime or candidate.rounds < ROUNDS:
            slow = f"timed in {candidate.rounds} of {ROUNDS} rounds: too slow"
            note = slow if runtime else f"not tried: {candidate.reason}"
            notes.append(terminal.wrapped(f"{candidate.name}, {candidate.precision}: {note}"))
    return "\n".join(lines + notes)


def _candidate_names(precision: str) -> Iterator[tuple[str, str]]:
    yield "keras", "float32"  # the reference
    on_cpu, on_gpu = machine.has_bfloat16(), bool(tf.config.list_logical_devices("GPU"))
    for candidate_precision in (precision,) if precision else PRECISIONS:
        for name, row in RUNTIMES.items():
            fast = on_cpu or (on_gpu and row.packages == ("tensorflow",))
            if candidate_precision == "bfloat16" and not precision and not fast:
                continue
            if name != "keras" and candidate_precision in row.precisions:
                yield name, candidate_precision


def agreement(answers: Any, keras_answers: Any) -> float:
    """Returns the share of examples with Keras's best class or span, of `Data.join`'s results."""
    ours, theirs = (
        x.argmax(1)[:, None] if isinstance(x, np.ndarray) else x.spans
        for x in (answers, keras_answers)
    )
    return float((ours == theirs).all(1).mean())
