"""Wall-clock time in named parts. Exactly one part runs at any moment, so the parts sum to it.

Which parts count is a set, not a property of the clock: DAWNBENCH is the benchmark's rule
(loading data and building the model count, entries issue 21; evaluation and checkpoints don't,
issues 9 and 12). Another rule is another set over the same record.
"""

import datetime
import math
import threading
import time
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

DAWNBENCH = frozenset({"load", "build", "compile", "train"})
BEAT_SECONDS = 1.0  # between calls of what writes the clock and shows the progress


class Hit(dict[str, float]):
    """The first row at a threshold: a dict with "epoch", "hours" and scores."""

    @property
    def seconds(self) -> float:
        """Seconds on the clock."""
        return self["hours"] * 3600


class Clock:
    """A monotonic clock of named parts, in seconds. Another thread may read it.

    Args:
      parts: seconds per part to carry on from, as `parts()` gave them in an earlier process.
      now: the time source.

    >>> seconds = iter([0.0, 2.0, 5.0, 6.0, 9.0, 10.0])
    >>> clock = Clock(now=lambda: next(seconds))  # 0: "other" begins
    >>> with clock.part("train"):  # 2: train begins
    ...     with clock.part("eval"):  # from 5 to 6
    ...         pass
    >>> clock.parts()
    {'other': 3.0, 'train': 6.0, 'eval': 1.0}
    """

    def __init__(
        self, parts: Mapping[str, float] | None = None, now: Callable[[], float] = time.monotonic
    ):
        self._parts, self._now = dict(parts or {}), now
        self._current, self._since = "other", now()
        self._lock = threading.RLock()
        self._ended: Callable[[], tuple[str, float] | None] | None = None

    @property
    def current(self) -> str:
        """The part that is running."""
        self._settle()
        return self._current

    def now(self) -> float:
        """Returns the moment, in seconds of the time source."""
        return self._now()

    def switch(self, name: str, since: float | None = None) -> str:
        """Ends the running part, begins `name`; returns the part that was running."""
        # `since`: moment by `now()` at which it began, not before the running part; None: now.
        self._settle()
        with self._lock:
            ended = self._current
            moment = self._now() if since is None else max(since, self._since)
            self._parts[ended] = self._parts.get(ended, 0.0) + moment - self._since
            self._current, self._since = name, moment
        return ended

    def watch(self, ended: Callable[[], tuple[str, float] | None] | None) -> None:
        """Sets a function that detects the end of the running part."""
        # Called before each use. It returns None, or the next part and the moment it began.
        self._ended = ended

    def _settle(self) -> None:
        if self._ended and (followed := self._ended()):
            self._ended = None
            self.switch(*followed)

    def __getstate__(self) -> dict[str, object]:
        """Returns the state for a copy or a pickle, without the lock."""
        return {"parts": self.parts(), "current": self._current, "now": self._now}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["parts"], state["now"])  # type: ignore[misc]
        self._current = state["current"]

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Runs the body as part `name`, then goes back to the part before."""
        before = self.switch(name)
        try:
            yield
        finally:
            self.switch(before)

    def carry_on(self, parts: Mapping[str, float]) -> None:
        """Adds the seconds by part of an earlier process to this clock."""
        with self._lock:
            for name, seconds in parts.items():
                self._parts[name] = self._parts.get(name, 0.0) + seconds

    def parts(self) -> dict[str, float]:
        """Returns the seconds of each part so far, including the running part."""
        self._settle()
        with self._lock:  # `_since` stays: the part's end may be found later
            running = self._parts.get(self._current, 0.0) + self._now() - self._since
            return {**self._parts, self._current: running}

    def hours(self, counted: Container[str] = DAWNBENCH) -> float:
        """Returns the sum of the counted parts in hours; by default DAWNBench's rule."""
        return seconds_of(self.parts(), counted) / 3600


def duration(seconds: float) -> str:
    """Formats seconds, rounded up.

    >>> duration(3.2), duration(75), duration(7400), duration(200_000)
    ('4 s', '0:01:15', '2:03:20', '2 days, 7:33:20')
    """
    seconds = math.ceil(seconds)
    return f"{seconds} s" if seconds < 60 else str(datetime.timedelta(seconds=seconds))


def in_units(seconds: float) -> str:
    """Formats seconds as seconds, minutes or hours; infinity as "never".

    >>> in_units(6.84), in_units(540), in_units(27_000), in_units(math.inf)
    ('6.8 s', '9.0 min', '7.50 h', 'never')
    """
    if not math.isfinite(seconds):
        return "never"
    if seconds < 300:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:,.2f} h"


def seconds_of(parts: Mapping[str, float], counted: Container[str] = DAWNBENCH) -> float:
    """Returns the sum in seconds of the counted parts of what `Clock.parts` returned."""
    return sum(seconds for name, seconds in parts.items() if name in counted)


@contextmanager
def beating(*beats: Callable[[], None]) -> Iterator[None]:
    """Calls each of `beats` now, every second of the body from a thread, and once after it."""
    ended = threading.Event()

    def run() -> None:
        while not ended.wait(BEAT_SECONDS):
            for beat in beats:
                beat()

    for beat in beats:
        beat()
    thread = threading.Thread(target=run, name="pulse", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(10 * BEAT_SECONDS)  # limited, because a write may hang on its disk
        for beat in beats:
            beat()
