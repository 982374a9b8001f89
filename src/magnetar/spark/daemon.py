"""What Spark starts its Python workers from (``spark.python.daemon.module``): `pyspark.daemon`, without archives.

Spark puts ``pyspark.zip``, py4j's archive and its own core library, a jar with thousands of names, in front of every
worker's path. There Python finds no compiled modules, so it compiles pyspark's sources anew in every process that
starts, and it reads the three tables of contents once more for every task (measured: docs/jobs.md). Where the same
pyspark is installed as a package, as ``pip`` does it, these entries are dropped before pyspark is imported. Workers,
which are forked from here, never see them.
"""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Final

_VERSION: Final = "pyspark/version.py"


def is_archive(entry: str) -> bool:
    """Whether Spark put it into the path, by its name."""
    name = Path(entry).name
    return (
        name == "pyspark.zip"
        or (name.startswith("py4j-") and name.endswith("-src.zip"))
        or (name.startswith("spark-core_") and name.endswith(".jar"))
    )


def without_archives(path: Sequence[str]) -> list[str]:
    """The path to go on with: as it is, unless the rest of it has the same pyspark, and py4j."""
    rest = [entry for entry in path if not is_archive(entry)]
    packed = next((entry for entry in path if Path(entry).name == "pyspark.zip"), None)
    pyspark, py4j = (PathFinder.find_spec(name, rest) for name in ("pyspark", "py4j"))
    if packed is None or pyspark is None or pyspark.origin is None or py4j is None:
        return list(path)
    try:
        with zipfile.ZipFile(packed) as archive:
            same = archive.read(_VERSION) == (Path(pyspark.origin).parent.parent / _VERSION).read_bytes()
    except (OSError, KeyError, zipfile.BadZipFile):
        return list(path)
    return rest if same else list(path)


def main() -> None:
    """Until Spark ends it."""
    kept = without_archives(sys.path)
    for entry in set(sys.path) - set(kept):
        sys.path_importer_cache.pop(entry, None)
    sys.path[:] = kept
    from pyspark.daemon import manager

    manager()


if __name__ == "__main__":
    main()
