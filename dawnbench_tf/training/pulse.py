"""A background thread that calls functions every second: to write the clock, show the progress."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SECONDS = 1.0  # between calls


@contextmanager
def beating(*beats: Callable[[], None]) -> Iterator[None]:
    """Calls each of `beats` once now, every second while the body runs, and once after it."""
    ended = threading.Event()

    def run() -> None:
        while not ended.wait(SECONDS):
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
        thread.join(10 * SECONDS)  # limited, because a write may hang on its disk
        for beat in beats:
            beat()
