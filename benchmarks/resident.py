"""Memory of a process and all it started, by what they are, sampled from outside (`/proc`) while they run.

``driver`` is the process itself, ``java`` Spark's Java process, ``workers`` Spark's Python processes together. The
sum over workers counts pages that forked processes share once for each, so it is an upper bound. Of single processes
the kernel's own high-water mark is taken, which no sample misses while the process lives.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Final, Self

from benchmarks.brokers import process_tree

_EVERY: Final = 0.05


class Watch:
    """Use as a context manager; `peaks` in MB."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.peaks = {"driver": 0.0, "java": 0.0, "workers": 0.0}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._done.wait(_EVERY):
            self._sample()

    def _sample(self) -> None:
        workers = 0.0
        for pid in process_tree(self._pid):
            name, now, highest = _status(pid)
            if pid == self._pid:
                self._raise("driver", highest)
            elif name == "java":
                self._raise("java", highest)
            else:
                workers += now
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
