"""What a stretch of work took, and how late messages were."""

from __future__ import annotations

import time
from collections.abc import Sequence


class Meter:
    """Wall and CPU time since it was made; CPU of the whole process, all threads."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def over(self, messages: int) -> dict[str, float]:
        """Return messages a second and microseconds of CPU for each, of so many."""
        wall, cpu = time.perf_counter() - self._wall, time.process_time() - self._cpu
        return {"rate": messages / wall, "cpu": cpu / messages * 1e6}


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which this share of them is."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]
