"""How long one example takes: a loop that times calls and adds as little of its own as can be.

DAWNBench's rule: examples one at a time, each of the test set once, the mean. Here besides: calls
until they are steady before the first timed one, several passes, percentiles, a confidence
interval, and what the loop itself costs. Plain Python and NumPy.
"""

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

__all__ = ["measure", "Latencies"]

BLOCKS = 20  # of consecutive calls, whose means give the confidence interval
WINDOW = 20  # examples that are called between two looks at whether calls are steady
STEADY = 0.05  # relative change of the median from one window to the next
MOST_SECONDS = 20.0  # of the calls before the first timed one
BRIEFLY = 2.0  # the same, where many runtimes or sizes are compared
LOADED = 500  # examples in memory at a time
NOISY = 0.05  # half a confidence interval, relative to the mean, from which it tells nothing


class Latencies(NamedTuple):
    """What was measured; seconds are wall-clock seconds of one call."""

    seconds: np.ndarray  # (passes, examples), in the order they were called
    outputs: list[Any]  # of the first pass, one for each example
    warm_up: int  # calls before the first timed one
    steady: bool  # whether these had become steady; they are ended after MOST_SECONDS
    overhead: float  # seconds that the loop adds to each call, of a call that does nothing

    @property
    def mean(self) -> float:
        """Seconds for one example: the benchmark's figure."""
        return float(self.seconds.mean())

    def percentile(self, percent: float) -> float:
        """Seconds that so many percent of the calls stay within."""
        return float(np.percentile(self.seconds, percent))

    def interval(self, confidence: float = 0.95) -> float:
        """Half of the mean's confidence interval, in seconds, by the method of batch means.

        Neighbouring calls are alike (caches, clocks, other programs), so not calls but the means of
        consecutive blocks are taken for independent; each pass is centred first, as examples may
        well differ: it is the machine's noise that this tells.
        """
        passes, examples = self.seconds.shape
        own = self.seconds.mean(0) if passes > 1 else self.mean  # of each example
        blocks = np.array_split((self.seconds - own).ravel(), min(BLOCKS, passes * examples))
        if len(blocks) < 2:
            return float("inf")
        error = stats.sem([block.mean() for block in blocks])
        if passes > 1:  # `own` follows the noise of its passes
            error *= (passes / (passes - 1)) ** 0.5
        return float(error * stats.t.ppf((1 + confidence) / 2, len(blocks) - 1))

    def facts(self) -> dict[str, float]:
        """What an entry's misc says of it."""
        percentiles = {f"p{p}Ms": round(self.percentile(p) * 1e3, 6) for p in (50, 90, 99)}
        return {
            "passes": len(self.seconds),
            "warmUpCalls": self.warm_up,
            "warmUpSteady": self.steady,
            "confidenceMs": round(self.interval() * 1e3, 6),
            "loopOverheadMs": round(self.overhead * 1e3, 6),
            **percentiles,
        }

    @property
    def noisy(self) -> bool:
        """Whether the machine was too busy to tell the mean."""
        return self.interval() > NOISY * self.mean


def measure(
    call: Callable[[Any], Any],
    examples: Sequence,
    passes: int = 3,
    seconds: float = 120,
    progress: Callable[[int, int], None] = lambda done, of: None,
    warm_up_seconds: float = MOST_SECONDS,
) -> Latencies:
    """Calls every example once in each pass, and times each call.

    Args:
      call: answers one example; what it returns is kept, so it must be its own.
      examples: in the order to call them; they are loaded a block at a time, off the clock.
      passes: over all examples, at most; one is always finished.
      seconds: after which no further pass begins.
      progress: told before each pass how many are done, of how many.
      warm_up_seconds: after which the first timed call comes, though calls be not steady yet.
    """
    with _no_collection():
        warm_up, steady = _warm_up(call, examples, warm_up_seconds)
        overhead = _overhead(examples)
        rows: list[np.ndarray] = []
        outputs: list[Any] = []
        begin = time.monotonic()
        for done in range(passes):
            if done and time.monotonic() - begin > seconds:
                break
            progress(done, passes)
            nanoseconds, of_pass = _timed(call, examples)
            rows.append(nanoseconds / 1e9)
            outputs = outputs or of_pass
    return Latencies(np.array(rows), outputs, warm_up, steady, overhead)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Python's garbage collector would stop some calls for milliseconds: here it waits."""
    enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _timed(call, examples):
    """Nanoseconds of each call, (examples,), and what the calls returned."""
    blocks = range(0, len(examples), LOADED)
    timed = [_timed_block(call, list(examples[at : at + LOADED])) for at in blocks]
    laps, outputs = zip(*timed, strict=True)
    nanoseconds = np.concatenate([np.diff(of_block) for of_block in laps])
    return nanoseconds, [output for of_block in outputs for output in of_block]


def _timed_block(call, examples):
    """Clock readings around each call, in nanoseconds, and what the calls returned."""
    laps, outputs = [0] * (len(examples) + 1), [None] * len(examples)
    clock = time.perf_counter_ns  # monotonic
    laps[0] = clock()
    for number, example in enumerate(examples):
        outputs[number] = call(example)
        laps[number + 1] = clock()
    return laps, outputs


def _warm_up(call, examples, most_seconds):
    """Calls the same few examples again and again until that takes no less and no more time.

    Returns:
      How many calls, and whether the last two windows of them had become alike.
    """
    window, calls, begin = list(examples[:WINDOW]), 0, time.monotonic()
    before = None
    while calls == 0 or time.monotonic() - begin < most_seconds:
        nanoseconds, _ = _timed(call, window)
        calls += len(window)
        median = float(np.median(nanoseconds))
        if before is not None and abs(median - before) <= STEADY * before:
            return calls, True
        before = median
    return calls, False


def _overhead(examples):
    """Seconds of the loop's own for each call: those of a call that does nothing, at the median."""
    few = examples[:LOADED]
    medians = [np.median(_timed(lambda example: None, few)[0]) for _ in range(5)]
    return float(np.median(medians)) / 1e9
