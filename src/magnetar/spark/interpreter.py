"""What Spark's Python processes need not do: compile pyspark each time, and search all that is imported for garbage.

Spark puts ``pyspark.zip`` before everything else on the path of every Python process that it starts. Modules in a
zip have no compiled form, so each process compiles some two hundred of them again: 0.47 of its 0.68 s (measured with
pyspark 4.3.0). After it comes the jar of Spark's core, in which every import is looked for, too. The driver starts one
such process for the source of each query and one for each kind of planning. Where both are parts of a pyspark that is
installed and that the interpreter finds anyway, as with PyPI's, they are left out.

Installed as the command ``magnetar-spark-python``; `of_session` names it. For sessions of one's own:
``PYSPARK_PYTHON=$(command -v magnetar-spark-python)``.

And after each task Spark collects garbage in the process that did it (`manager` in pyspark/daemon.py), which took 65 ms
of CPU with our kernels loaded, as long as all else of a small micro-batch; `settle` makes that next to nothing.
"""

from __future__ import annotations

import gc
import os
import runpy
import sys
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Final

COMMAND: Final = "magnetar-spark-python"
_DAEMON: Final = "pyspark.daemon"
_WORKER: Final = "pyspark.worker"

_settled: set[str] = set()
"""The callers of `settle` in this process."""


def settle(who: str) -> None:
    """Exclude what is imported by now from garbage collection; counts once for each ``who``."""
    if who not in _settled:
        _settled.add(who)
        gc.collect()
        gc.freeze()


def without_archives(path: Sequence[str], installed: Sequence[str]) -> list[str]:
    """Return ``path`` less the archives that belong to a pyspark in one of the folders of ``installed``."""
    # the path of a virtual environment may lead there by way of a link, as the path of Spark may
    folders = {os.path.realpath(folder) for folder in installed if folder}
    return [entry for entry in path if not _is_doubled(Path(entry), folders)]


def _is_doubled(entry: Path, installed: AbstractSet[str]) -> bool:
    # <site-packages>/pyspark/python/lib/{pyspark,py4j-...-src}.zip, <site-packages>/pyspark/jars/spark-core_....jar
    depth = {".zip": ("lib", "python", "pyspark"), ".jar": ("jars", "pyspark")}.get(entry.suffix, ())
    folders = list(entry.parents)[: len(depth)]
    return (
        bool(depth)
        and tuple(folder.name for folder in folders) == depth
        and os.path.realpath(folders[-1].parent) in installed
    )


def of_session() -> str:
    """Return the command beside this interpreter; the interpreter itself where the command was not installed."""
    command = Path(sys.executable).parent / COMMAND
    return str(command) if os.access(command, os.X_OK) else sys.executable


def main() -> None:
    """Run ``-m MODULE ARGUMENTS`` in this process, as the interpreter would; anything else is the interpreter's."""
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    os.environ["PYTHONPATH"] = os.pathsep.join(without_archives(given, sys.path))
    if sys.argv[1:2] != ["-m"] or len(sys.argv) < 3:
        os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
    # A script's own folder comes first on the path, with -m it is the working directory; with -P it is neither.
    own = 0 if sys.flags.safe_path else 1
    sys.path[:] = [os.getcwd()][:own] + without_archives(sys.path[own:], sys.path)
    # Else their lists of contents are read again whenever Spark has caches invalidated.
    for archive in sys.path_importer_cache.keys() - set(sys.path):
        if archive.endswith((".zip", ".jar")):
            del sys.path_importer_cache[archive]
    sys.argv[:] = sys.argv[2:]
    if sys.argv[0] == _DAEMON:
        _be_ready()
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


def _be_ready() -> None:
    """Have a fork of the session's server do the work of this daemon, or import what its workers need.

    Workers are forks of the daemon. Libraries that start threads when they are imported (numpy) do not if Spark says
    that a task has one core, which it does unless spark.task.cpus says otherwise.
    """
    from magnetar.spark.forks.fork_request import ADDRESS, run_as_fork

    if address := os.environ.get(ADDRESS):
        code = run_as_fork(address, sys.argv)
        if code is not None:
            sys.exit(code)
    if sys.argv[1:] == [_WORKER] and os.environ.get("OMP_NUM_THREADS") == "1":
        from magnetar.spark.forks.preload import preload

        preload()
