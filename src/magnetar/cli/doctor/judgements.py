"""From numbers to symptoms; nothing here looks at the machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from magnetar.cli.doctor.symptom import Level, Symptom

SKEW_MAX_S: Final = 5.0
"""Tokens and time-to-live tolerate so much."""
_GIB: Final = 1 << 30
_FREE_MIN: Final = 1 * _GIB
_FREE_LOW: Final = 10 * _GIB
_SLOW_SYNC_MS: Final = 20.0
_INSTANT_SYNC_MS: Final = 0.02
_DESCRIPTORS_LOW: Final = 4096
_MEMORY_MIN: Final = 512 << 20
_IN_MEMORY: Final = ("tmpfs", "ramfs")
_OVER_NETWORK: Final = ("nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs")


def python(version: tuple[int, int], loop: str, build: str) -> Symptom:
    """The interpreter, its event loop (``uvloop`` or ``asyncio``), and which build of magnetar it runs."""
    words = f"Python {version[0]}.{version[1]}, event loop {loop}, {build}"
    if version < (3, 11):
        return Symptom("python", Level.FAILURE, words, "install Python 3.11 or later")
    if loop != "uvloop":
        return Symptom("python", Level.NOTE, words, "pip install uvloop makes the broker faster")
    return Symptom("python", Level.OK, words)


def descriptors(soft: int, hard: int) -> Symptom:
    """The limit of open files: each connection takes one."""
    words = f"{soft} open files, {hard} if asked for"
    if hard < 256:
        return Symptom("descriptors", Level.FAILURE, words, "raise it: ulimit -n 65536, or LimitNOFILE= of the unit")
    if hard < _DESCRIPTORS_LOW:
        return Symptom(
            "descriptors", Level.WARNING, words, "about so many connections are served; ulimit -Hn 65536 raises it"
        )
    return Symptom("descriptors", Level.OK, words)


def memory(available: int | None) -> Symptom:
    """Bytes that programs may still take; None: the system does not say."""
    if available is None:
        return Symptom("memory", Level.NOTE, "the system does not say how much is free")
    words = f"{available / _GIB:.1f} GiB available"
    if available < _MEMORY_MIN:
        return Symptom(
            "memory",
            Level.WARNING,
            words,
            "a busy broker takes up to 300 MB; lower managedLedgerCacheSizeMB or add memory",
        )
    return Symptom("memory", Level.OK, words)


def space(free: int, file_system: str) -> Symptom:
    """Judge the disk under the data."""
    words = f"{free / _GIB:.1f} GiB free on {file_system or 'an unknown file system'}"
    if free < _FREE_MIN:
        return Symptom(
            "disk", Level.FAILURE, words, "make room, or choose another --data: a full disk stops publishing"
        )
    if file_system in _IN_MEMORY:
        return Symptom("disk", Level.WARNING, words, "it is gone after a power loss; choose a --data on a disk")
    if file_system in _OVER_NETWORK:
        return Symptom(
            "disk", Level.WARNING, words, "receipts wait for the network; a local disk is faster and simpler"
        )
    if free < _FREE_LOW:
        return Symptom("disk", Level.WARNING, words, "backlogs and retention need room; look at it again soon")
    return Symptom("disk", Level.OK, words)


def sync_times(milliseconds: Sequence[float]) -> Symptom:
    """How long a write of 4 KB and its fdatasync took, some dozen times; receipts wait for that."""
    ordered = sorted(milliseconds)
    median, worst = ordered[len(ordered) // 2], ordered[-1]
    words = f"4 KB are safe on the disk after {median:.2f} ms in the middle, {worst:.2f} ms at worst"
    if median > _SLOW_SYNC_MS:
        return Symptom("fsync", Level.WARNING, words, "receipts take that long; a faster disk, or batches, help")
    if median < _INSTANT_SYNC_MS:
        return Symptom("fsync", Level.WARNING, words, "no disk is that fast: fsync probably does nothing here")
    return Symptom("fsync", Level.OK, words)


def port(number: int, setting: str, holder: str | None) -> Symptom:
    """A port that a broker would take by ``setting``; ``holder`` says who has it, None: it is free."""
    name = f"port {number}"
    if holder is None:
        return Symptom(name, Level.OK, "free")
    return Symptom(name, Level.NOTE, f"in use by {holder}", f"a second broker needs another: --set {setting}=…")


def clock_skew(seconds: float | None) -> Symptom:
    """The broker's clock minus ours; None: no broker says its time."""
    if seconds is None:
        return Symptom("clock", Level.OK, "no broker to compare with")
    words = f"the broker's clock is {abs(seconds):.0f} s {'ahead of' if seconds > 0 else 'behind'} this machine's"
    if abs(seconds) > SKEW_MAX_S:
        return Symptom("clock", Level.WARNING, words, "let NTP set both: tokens expire and messages age by the clock")
    return Symptom("clock", Level.OK, "the broker's clock and this machine's agree")


def java(major: int | None) -> Symptom:
    """The Java that Spark would start; None: there is none."""
    if major is None:
        return Symptom("java", Level.NOTE, "no java", "Spark needs Java 17 or later; the broker needs none")
    if major < 17:
        return Symptom("java", Level.WARNING, f"Java {major}", "Spark 4 needs Java 17 or later; the broker needs none")
    return Symptom("java", Level.OK, f"Java {major}")


def spark(version: str | None, *, archived: bool = True) -> Symptom:
    """The installed PySpark; None: there is none. ``archived``: whether Java's classes of it are."""
    if version is None:
        return Symptom("spark", Level.NOTE, "no pyspark", "pip install '.[spark]' from a checkout adds source and sink")
    if not version.startswith("4.3."):
        return Symptom("spark", Level.WARNING, f"PySpark {version}", "source and sink are made for Spark 4.3")
    if not archived:
        words = "sessions start twice as fast after: python -m magnetar.spark.class_archive"
        return Symptom("spark", Level.NOTE, f"PySpark {version}, no archive of Java's classes", words)
    return Symptom("spark", Level.OK, f"PySpark {version}")
