"""How the archive of Java's classes is made: by a session that is only there for that."""

from __future__ import annotations

import os
from pathlib import Path

from magnetar.model.errors import ServiceNotReadyError
from magnetar.spark.class_archive import rehearsal
from magnetar.spark.durable_files import sync
from magnetar.spark.java import options
from magnetar.spark.java.installation import check_java


def _remove_halves(place: Path) -> None:
    """Remove what was being written when its process was killed; each has the size of an archive."""
    for half in place.glob("spark-*.*.new"):
        writer = half.suffixes[-2][1:] if len(half.suffixes) > 1 else ""
        if writer.isdecimal() and not Path("/proc", writer).exists() and Path("/proc/self").exists():
            half.unlink(missing_ok=True)


def make() -> Path:
    """Make the archive, if there is none, by a session that does a little of everything; return where it is.

    Raises NotFoundError without Java, ServiceNotReadyError if Java makes none, OSError of the disk.
    """
    check_java()
    name = options.key()
    found = options.find(name, options.BESIDE, options.own_directory())
    if found is not None:
        return found
    beside = options.BESIDE
    place = (
        beside
        if os.access(beside if beside.exists() else beside.parent, os.W_OK | os.X_OK)
        else options.own_directory()
    )
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    _remove_halves(place)
    new = place / f"spark-{name}.{os.getpid()}.new"
    try:
        rehearsal.rehearse(f"{options.quoted(options.WRITTEN, new)} {options.SILENT}")
        if not new.exists():
            raise ServiceNotReadyError("Java made no archive of its classes; what it wrote above may say why")
        sync(new)
        whole = place / f"spark-{name}-{new.stat().st_size}.jsa"
        new.rename(whole)
    finally:
        new.unlink(missing_ok=True)
    return whole
