"""Once a second, whatever the main thread does: a run's clock is written, its progress shown."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SECONDS = 1.0


@contextmanager
def beating(*beats: Callable[[], None]) -> Iterator[None]:
    """Calls each of `beats` now, once a second while the body runs, and after its end."""
    ended = threading.Event()

    def run():
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
        thread.join(10 * SECONDS)  # a disk may hang; the run's end does not wait for it
        for beat in beats:
            beat()
