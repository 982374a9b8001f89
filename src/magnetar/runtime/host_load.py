"""How much of the machine is used, between two looks: processors, memory, and the network as far as the system says."""

from __future__ import annotations

import os
import resource
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from magnetar.runtime.process_figures import process_figures

_MEGABYTE = 1 << 20


class Usage(NamedTuple):
    """What is used, and how much there is."""

    usage: float
    limit: float


class HostLoad:
    """Remembers the last look, so that each gives what was used since."""

    def __init__(self, network: Path = Path("/sys/class/net")) -> None:
        self._network = network
        self._at = perf_counter()
        self._cpu = _cpu_seconds()
        self._bytes = self._counted()

    def look(self) -> dict[str, Usage]:
        """``cpu`` in percent of one processor, ``memory`` in megabytes, bandwidth in kilobits per second."""
        now, cpu, counted = perf_counter(), _cpu_seconds(), self._counted()
        seconds = max(now - self._at, 1e-3)
        found = {
            "cpu": Usage(100 * (cpu - self._cpu) / seconds, 100.0 * (os.cpu_count() or 1)),
            "memory": Usage(
                process_figures().get("process_resident_memory_bytes", 0.0) / _MEGABYTE,
                os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / _MEGABYTE,
            ),
        }
        for word, before, after in zip(("bandwidthIn", "bandwidthOut"), self._bytes, counted, strict=True):
            found[word] = Usage(max(0, after - before) * 8 / 1000 / seconds, -1.0)
        self._at, self._cpu, self._bytes = now, cpu, counted
        return found

    def _counted(self) -> tuple[int, int]:
        """Bytes in and out of all networks that leave this machine."""
        sums = [0, 0]
        try:
            for network in self._network.iterdir():
                if network.name == "lo":
                    continue
                for place, word in enumerate(("rx_bytes", "tx_bytes")):
                    sums[place] += int((network / "statistics" / word).read_text())
        except (OSError, ValueError):
            return 0, 0
        return sums[0], sums[1]


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
