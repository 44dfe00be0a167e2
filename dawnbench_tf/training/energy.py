"""Energy, where the machine tells: RAPL's counters of CPUs, NVML's of NVIDIA's GPUs."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

RAPL = Path("/sys/class/powercap")


class Energy:
    """Joules since it was made. `tick()` must be called more often than a counter overflows.

    RAPL's overflow within minutes. It counts whole sockets: all programs on them, not only ours.

    Args:
      gpus: how many GPUs, from the first, count.
      root: folder of RAPL's counters.
    """

    def __init__(self, gpus: int = 0, root: Path = RAPL):
        self._counters = [*_rapl(root), *_nvml(gpus)]
        self.sources = sorted({counter.source for counter in self._counters})

    def tick(self) -> None:
        """Reads the counters."""
        for counter in self._counters:
            counter.tick()

    @property
    def joules(self) -> float | None:
        """So far; None where no counter can be read."""
        return sum(c.joules for c in self._counters) if self._counters else None


class _Counter:
    """Adds up what a counter that starts anew at its highest value rises by."""

    def __init__(self, source, read, highest):
        self.source, self._read, self._highest = source, read, highest
        self._last, self.joules = read(), 0.0

    def tick(self):
        """Reads it."""
        with suppress(OSError, ValueError):  # a reading less is none lost: the next has it all
            now = self._read()
            rise = now - self._last
            self.joules += rise if rise >= 0 else rise + self._highest
            self._last = now


def _rapl(root: Path) -> Sequence[_Counter]:
    """A counter for each socket: intel-rapl:N, on AMD's as well; root's own on most machines."""
    counters = []
    for folder in sorted(root.glob("intel-rapl:*")):
        if folder.name.count(":") != 1:  # a part of a socket
            continue

        def read(file=folder / "energy_uj"):
            return int(file.read_text()) / 1e6

        with suppress(OSError, ValueError):
            highest = int((folder / "max_energy_range_uj").read_text()) / 1e6
            counters.append(_Counter("RAPL", read, highest))
    return counters


def _nvml(gpus: int) -> Sequence[_Counter]:
    if not gpus:
        return []
    try:
        import pynvml

        pynvml.nvmlInit()
        handles = [pynvml.nvmlDeviceGetHandleByIndex(number) for number in range(gpus)]

        def reader(handle):
            return lambda: pynvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1e3

        return [_Counter("NVML", reader(handle), 0.0) for handle in handles]
    except ImportError:
        return []
    except pynvml.NVMLError:  # no driver, or a GPU that does not tell
        return []
