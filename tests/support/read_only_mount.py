"""A directory as on a file system that is read-only: a bind mount, which only root can make; others skip the test."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def read_only(path: Path) -> Iterator[None]:
    """Whatever is opened below ``path`` meanwhile is on a read-only file system."""
    steps = (["mount", "--bind", str(path), str(path)], ["mount", "-o", "remount,ro,bind", str(path)])
    if shutil.which("mount") is None or subprocess.run(steps[0], capture_output=True, check=False).returncode:
        pytest.skip("a directory cannot be mounted here: that takes root")
    try:
        subprocess.run(steps[1], check=True)
        yield
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)
