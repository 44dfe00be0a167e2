"""Energy counters: RAPL for CPUs, NVML for NVIDIA GPUs."""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

RAPL = Path("/sys/class/powercap")


class Energy:
    """The energy used since the object was created, in joules.

    `tick()` has to be called more often than a counter overflows; RAPL's overflow within minutes.
    RAPL counts whole sockets, so it includes other programs.

    Args:
      gpus: number of GPUs that count, from the first on.
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
        """Joules so far; None if the machine has no readable counter."""
        return sum(c.joules for c in self._counters) if self._counters else None


class _Counter:
    """The total rise of a hardware counter that wraps to 0 at its highest value."""

    def __init__(self, source: str, read: Callable[[], float], highest: float) -> None:
        self.source, self._read, self._highest = source, read, highest
        self._last, self.joules = read(), 0.0

    def tick(self) -> None:
        """Reads the counter."""
        with suppress(OSError, ValueError):  # a failed read loses nothing: counters are cumulative
            now = self._read()
            rise = now - self._last
            self.joules += rise if rise >= 0 else rise + self._highest  # it wrapped, at most once
            self._last = now


def _rapl(root: Path) -> Sequence[_Counter]:
    """Returns a counter for each socket, intel-rapl:N (AMD's too); most need root to be read."""
    counters = []
    for folder in sorted(root.glob("intel-rapl:*")):
        if folder.name.count(":") != 1:  # a domain inside a socket, which the socket includes
            continue

        def read(file: Path = folder / "energy_uj") -> float:
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
        handles = [
            pynvml.nvmlDeviceGetHandleByUUID(name)
            if isinstance(name, str)
            else pynvml.nvmlDeviceGetHandleByIndex(name)
            for name in visible_gpus(gpus)
        ]

        def reader(handle: Any) -> Callable[[], float]:
            def read() -> float:
                try:
                    return pynvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1e3
                except pynvml.NVMLError as error:
                    raise OSError(str(error)) from None

            return read

        return [_Counter("NVML", reader(handle), 0.0) for handle in handles]
    except (ImportError, OSError):  # a GPU without an energy counter
        return []
    except pynvml.NVMLError:  # no driver
        return []


def visible_gpus(count: int) -> Sequence[int | str]:
    """Returns NVML's index or the UUID of each of the first GPUs that this process may use.

    CUDA numbers those of CUDA_VISIBLE_DEVICES from 0 on; NVML numbers all GPUs of the machine.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return range(count)
    names = [name.strip() for name in visible.split(",")]
    return [int(name) if name.isdigit() else name for name in names[:count]]
