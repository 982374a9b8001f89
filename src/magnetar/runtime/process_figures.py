"""What the system says of this process, in the names of Prometheus clients: from /proc, {} where there is none."""

from __future__ import annotations

import os
import resource
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_STARTED: Final = 19
_VIRTUAL: Final = 20
_RESIDENT: Final = 21
"""Places of fields in /proc/self/stat after the name of the program."""


def process_figures(proc: Path = _PROC) -> dict[str, float]:
    """Seconds, bytes and numbers of descriptors, by the name of their family."""
    try:
        fields = (proc / "self" / "stat").read_text().rpartition(")")[2].split()
        booted = _booted((proc / "stat").read_text())
        open_files = len(os.listdir(proc / "self" / "fd"))
    except OSError:
        return {}
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "process_cpu_seconds": usage.ru_utime + usage.ru_stime,
        "process_start_time_seconds": booted + int(fields[_STARTED]) / os.sysconf("SC_CLK_TCK"),
        "process_virtual_memory_bytes": int(fields[_VIRTUAL]),
        "process_resident_memory_bytes": int(fields[_RESIDENT]) * resource.getpagesize(),
        "process_open_fds": open_files,
        "process_max_fds": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
    }


def _booted(text: str) -> int:
    return next((int(line.split()[1]) for line in text.splitlines() if line.startswith("btime ")), 0)
