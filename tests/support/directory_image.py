"""A simulated directory as names and bytes, and a directory made of such."""

from __future__ import annotations

from magnetar.testing.faultfiles import FaultFileSystem
from tests.support.store_lives import disk

Files = dict[str, bytes]


def snapshot(files: FaultFileSystem) -> Files:
    out = {}
    for name in files.names():
        if name != "LOCK":
            file = files.open(name)
            out[name] = file.read(0, file.size())
    return out


def restored(files: Files) -> FaultFileSystem:
    fresh = disk()
    for name, content in files.items():
        fresh.open(name, create=True).append([content])
    return fresh
