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
        handles = _handles(pynvml, gpus)

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


def _handles(nvml: Any, count: int) -> Sequence[Any]:
    """Returns NVML's handles of the first `count` GPUs that CUDA shows; [] if that is not certain.

    NVML numbers all GPUs of the machine by their place on the bus. CUDA numbers those that
    CUDA_VISIBLE_DEVICES names, and puts the fastest first unless CUDA_DEVICE_ORDER is PCI_BUS_ID.
    """
    handles = [nvml.nvmlDeviceGetHandleByIndex(n) for n in range(nvml.nvmlDeviceGetCount())]
    by_bus = os.environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID"
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = [*map(str, range(len(handles)))] if visible is None else visible.split(",")
    shown = []
    for name in map(str.strip, names[:count]):
        if name.isdigit():
            same = by_bus or len(set(map(nvml.nvmlDeviceGetName, handles))) == 1
            shown += handles[int(name) : int(name) + 1] if same else []
        else:  # a UUID, or the start of one
            shown += [h for h in handles if nvml.nvmlDeviceGetUUID(h).startswith(name)][:1]
    return shown if len(shown) == count else []
