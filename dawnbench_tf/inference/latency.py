"""Measures inference latency with a minimal timing loop.

DAWNBench's rule is the mean over the test set, one example at a time. This module adds a warm-up
until calls are steady, several passes, percentiles, a confidence interval and the overhead of the
loop itself. Plain Python and NumPy.
"""

import gc
import math
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

__all__ = ["measure", "Latencies"]

BLOCKS = 20  # blocks of consecutive calls; their means give the confidence interval
WINDOW = 20  # examples of a warm-up window
STEADY = 0.05  # calls are steady if the median changes by at most this share between windows
WARM_UP_SECONDS = 20.0  # duration of the warm-up, at most
SHORT_WARM_UP_SECONDS = 2.0  # duration where many runtimes or batch sizes are compared, at most
BLOCK_SIZE = 500  # examples in memory at a time
NOISY = 0.05  # a half-width of the confidence interval above this share of the mean is noise


class Latencies(NamedTuple):
    """Latencies of examples: wall-clock seconds of single calls.

    Attributes:
      seconds: float array (passes, examples), in the order of the calls.
      outputs: outputs of the first pass, one for each example.
      warm_up: number of warm-up calls.
      steady: whether calls had become steady before the warm-up's time limit.
      overhead: seconds that the loop adds to each call, measured with an empty call.
    """

    seconds: np.ndarray
    outputs: list[Any]
    warm_up: int
    steady: bool
    overhead: float

    @property
    def mean(self) -> float:
        """Mean seconds per example: the benchmark's figure."""
        return float(self.seconds.mean())

    def percentile(self, percent: float) -> float:
        """Returns a latency percentile in seconds; `percent` is from 0 to 100."""
        return float(np.percentile(self.seconds, percent))

    def interval(self) -> float:
        """Returns the half-width of the mean's 95 % confidence interval, in seconds (batch means).

        Consecutive calls are correlated (caches, clock rates, other programs), so the means of
        consecutive blocks are treated as independent, instead of the calls. Each example's mean is
        subtracted first: the interval tells the noise of the machine, not how examples differ. Of
        one pass it tells both.
        """
        passes, examples = self.seconds.shape
        own = self.seconds.mean(0) if passes > 1 else self.mean  # mean of each example
        blocks = np.array_split((self.seconds - own).ravel(), min(BLOCKS, passes * examples))
        if len(blocks) < 2:
            return float("inf")
        error = stats.sem([block.mean() for block in blocks])
        if passes > 1:  # `own`, estimated from these passes, hides 1 / passes of the variance
            error *= (passes / (passes - 1)) ** 0.5
        return float(error * stats.t.ppf(0.975, len(blocks) - 1))

    def facts(self) -> dict[str, float]:
        """Returns the keys and values of the latency in an entry's misc."""
        interval = self.interval()  # infinite for one call
        return {
            "passes": len(self.seconds),
            "warmUpCalls": self.warm_up,
            "warmUpSteady": self.steady,
            **({"confidenceMs": round(interval * 1e3, 6)} if math.isfinite(interval) else {}),
            "loopOverheadMs": round(self.overhead * 1e3, 6),
            **{f"p{p}Ms": round(self.percentile(p) * 1e3, 6) for p in (50, 90, 99)},
        }

    @property
    def noisy(self) -> bool:
        """Whether the machine was too busy for a reliable mean; False of one pass: not known."""
        return len(self.seconds) > 1 and self.interval() > NOISY * self.mean


def measure(
    call: Callable[[Any], Any],
    examples: Sequence,
    passes: int = 3,
    seconds: float = 120,
    progress: Callable[[int, int], None] = lambda done, total: None,
    warm_up_seconds: float = WARM_UP_SECONDS,
) -> Latencies:
    """Times a call of every example, once in each pass.

    Args:
      call: runs the model on one example. Its result is kept, so it must not be a reused buffer.
      examples: the examples, called in order and loaded a block at a time outside of the timing.
      passes: maximum number of passes over all examples; the first is always completed.
      seconds: time after which no further pass starts.
      progress: called before each pass with the number of completed passes and `passes`.
      warm_up_seconds: time after which the warm-up ends, steady or not, with its next 20 calls.

    Returns:
      Latencies and the outputs of the first pass.

    Raises:
      ValueError: no examples, or no pass.
    """
    if passes < 1 or not len(examples):
        counts = f"passes={passes}, {len(examples)} examples"
        raise ValueError(f"At least one pass over one example can be timed. Received: {counts}")
    enabled = gc.isenabled()
    gc.collect()
    gc.disable()  # Python's garbage collector would delay some calls by milliseconds
    try:
        warm_up, steady = _warm_up(call, examples, warm_up_seconds)
        few = list(examples[:BLOCK_SIZE])
        empty = [np.median(_time_calls(lambda example: None, few)[0]) for _ in range(5)]
        rows: list[np.ndarray] = []
        outputs: list[Any] = []
        begin = time.monotonic()
        for done in range(passes):
            if done and time.monotonic() - begin > seconds:
                break
            progress(done, passes)
            nanoseconds, pass_outputs = _time_calls(call, examples)
            rows.append(nanoseconds / 1e9)
            outputs = outputs or pass_outputs
    finally:
        if enabled:
            gc.enable()
    return Latencies(np.array(rows), outputs, warm_up, steady, float(np.median(empty)) / 1e9)


def _time_calls(call: Callable[[Any], Any], examples: Sequence) -> tuple[np.ndarray, list[Any]]:
    """Returns the nanoseconds (examples,) and the outputs of all calls."""
    clock = time.perf_counter_ns  # monotonic
    nanoseconds, outputs = list[np.ndarray](), list[Any]()
    for begin in range(0, len(examples), BLOCK_SIZE):
        block = list(examples[begin : begin + BLOCK_SIZE])  # off the clock
        laps, results = [0] * (len(block) + 1), [None] * len(block)
        laps[0] = clock()
        for number, example in enumerate(block):
            results[number] = call(example)
            laps[number + 1] = clock()
        nanoseconds.append(np.diff(laps))
        outputs += results
    return np.concatenate(nanoseconds), outputs


def _warm_up(
    call: Callable[[Any], Any], examples: Sequence, most_seconds: float
) -> tuple[int, bool]:
    """Repeats the first WINDOW examples until their median time moves by at most STEADY."""
    # Returns the number of calls, and whether the last two windows were steady.
    window, calls, begin = list(examples[:WINDOW]), 0, time.monotonic()
    before = None
    while calls == 0 or time.monotonic() - begin < most_seconds:
        nanoseconds, _ = _time_calls(call, window)
        calls += len(window)
        median = float(np.median(nanoseconds))
        if before is not None and abs(median - before) <= STEADY * before:
            return calls, True
        before = median
    return calls, False
