"""Memory and CPU time of a process and all it started, by what they are, sampled from outside (`/proc`) while they run.

``driver`` is the process itself, ``java`` Spark's Java process, ``workers`` Spark's Python processes together. The
sum over workers counts pages that forked processes share once for each, so it is an upper bound. Of single processes
the kernel's own high-water mark is taken, which no sample misses while the process lives.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Final, Self

from benchmarks.brokers import cpu_seconds, process_tree

_EVERY: Final = 0.05


class Watch:
    """Use as a context manager; `peaks` in MB, `cpu` in seconds."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.peaks = {"driver": 0.0, "java": 0.0, "workers": 0.0}
        self._cpu: dict[tuple[str, int], float] = {}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    @property
    def cpu(self) -> dict[str, float]:
        """CPU seconds of each kind of process, up to the last sample of each."""
        return {kind: sum(time for (one, _), time in self._cpu.items() if one == kind) for kind in self.peaks}

    def _run(self) -> None:
        while not self._done.wait(_EVERY):
            self._sample()

    def _sample(self) -> None:
        workers = 0.0
        for pid in process_tree(self._pid):
            name, now, highest = _status(pid)
            kind = "driver" if pid == self._pid else "java" if name == "java" else "workers"
            key = kind, pid
            self._cpu[key] = max(self._cpu.get(key, 0.0), cpu_seconds(pid))
            if kind == "workers":
                workers += now
            else:
                self._raise(kind, highest)
        self._raise("workers", workers)

    def _raise(self, kind: str, megabytes: float) -> None:
        self.peaks[kind] = max(self.peaks[kind], megabytes)


def _status(pid: int) -> tuple[str, float, float]:
    """Name, resident now and at most, MB; zeros for one that has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return "", 0.0, 0.0
    facts = dict(line.split(":", 1) for line in lines)
    if "VmRSS" not in facts:
        return "", 0.0, 0.0
    now, highest = (int(facts[key].split()[0]) / 1024 for key in ("VmRSS", "VmHWM"))
    return facts["Name"].strip(), now, highest
