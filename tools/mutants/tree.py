"""A copy of the working tree for faults to be put into; the tree itself is never touched."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tools.mutants.faults import Fault

ROOT = Path(__file__).resolve().parent.parent.parent
_WANTED = ("src", "tests", "tools", "benchmarks", "docs", "examples", "pyproject.toml", "README.md", "CHANGELOG.md")


class Tree:
    """One copy, with at most one fault at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *_WANTED],
            cwd=ROOT, capture_output=True, check=True,
        )  # fmt: skip
        for name in filter(None, listed.stdout.decode().split("\0")):
            if (ROOT / name).exists():
                (path / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(ROOT / name, path / name)
        self._writes = 0
        self._whole: dict[str, bytes] = {}
        """Files with a fault, as they were: the tree that was copied may change meanwhile."""

    def sources(self, prefix: str) -> dict[str, bytes]:
        """Every module below one of the copy's folders (or that one file), without generated code."""
        start = self.path / prefix
        found = [start] if start.is_file() else sorted(start.rglob("*.py"))
        return {str(path.relative_to(self.path)): path.read_bytes() for path in found if "generated" not in path.parts}

    def put(self, fault: Fault) -> None:
        """Write the module with the fault."""
        path = self.path / fault.path
        self._whole[fault.path] = path.read_bytes()
        self._write(path, fault.apply(self._whole[fault.path]))

    def restore(self, fault: Fault) -> None:
        """Write the file back as it was."""
        self._write(self.path / fault.path, self._whole.pop(fault.path))

    def _write(self, path: Path, data: bytes) -> None:
        path.write_bytes(data)
        # compiled modules are distinguished by size and second: two faults may share both
        self._writes += 1
        moment = int(path.stat().st_mtime) - 1_000_000 + self._writes
        os.utime(path, (moment, moment))
