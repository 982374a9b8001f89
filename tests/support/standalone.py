"""``magnetar standalone`` as a process of its own on free ports, with the line it prints when it is ready."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def standalone(data: Path, *settings: str, descriptors: int = 0) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process and the line it printed when it was ready."""
    free = ("brokerServicePort=0", "webServicePort=0", "bindAddress=127.0.0.1", *settings)
    flags = [part for setting in free for part in ("--set", setting)]
    command = [sys.executable, "-m", "magnetar.app.main", "standalone", "--data", str(data), *flags]
    if descriptors:
        limits = (
            f"import os, resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, ({descriptors}, {descriptors})); "
        )
        command = [sys.executable, "-c", limits + "os.execv(sys.argv[1], sys.argv[1:])", *command]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline()
    finally:
        process.terminate()
        process.communicate(timeout=30)


def ports(line: str) -> tuple[int, int]:
    found = re.search(r"pulsar://127\.0\.0\.1:(\d+) http://127\.0\.0\.1:(\d+) ", line)
    assert found, line
    return int(found[1]), int(found[2])
