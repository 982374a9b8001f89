"""The twin: a copy of ``src`` in ``build/compiled/src`` with the shared libraries beside the modules they stand for.

A directory of its own, so that no library lies where the pure build would load it unseen. Made again when a source, a
tool or the interpreter changed; what C did not change is not compiled again.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.metadata
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

HOME: Final = Path("build/compiled")
"""Below the checkout; ``src`` in it is what PYTHONPATH has to name."""


def digest(root: Path) -> str:
    """Return what the libraries depend on: every source, these tools, Python and mypy."""
    found = hashlib.sha256(f"{sys.version} {importlib.metadata.version('mypy')}".encode())
    for folder in ("src/magnetar", "tools/compiled"):
        for path in sorted((root / folder).rglob("*.py*")):
            if path.suffix != ".pyc":
                found.update(f"\n{path.relative_to(root)}\n".encode() + path.read_bytes())
    return found.hexdigest()


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    """Have others wait who make the same twin."""
    home.mkdir(parents=True, exist_ok=True)
    with open(home / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def make_twin(root: Path, level: str = "2") -> Path:
    """Return the twin's ``src``, made or brought up to date. Raises SystemExit with the words of what failed."""
    home = root / HOME
    with _alone(home):
        stamp, wanted = home / "digest", f"{digest(root)} {level}"
        if stamp.exists() and stamp.read_text() == wanted:
            return home / "src"
        stamp.unlink(missing_ok=True)
        work = home / f"work-{level}"
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(root / "src"), str(root)))}
        done = subprocess.run(
            [sys.executable, "-m", "tools.compiled.library", root, work, "--level", level],
            cwd=root,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            sys.exit(f"the compiled build failed:\n{done.stdout[-4000:]}{done.stderr[-8000:]}")
        shutil.rmtree(home / "src", ignore_errors=True)
        shutil.copytree(root / "src", home / "src", ignore=shutil.ignore_patterns("__pycache__", "*.so"))
        for library in (work / "lib").rglob("*.so"):
            shutil.copy2(library, home / "src" / library.relative_to(work / "lib"))
        stamp.write_text(wanted)
        return home / "src"
