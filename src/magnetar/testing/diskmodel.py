"""What a disk may still hold after a crash: one file's bytes and one directory's names; no loop, no faults by schedule.

A file (:class:`Inode`) has a *view*, what reads see, and a *durable* image, what a crash cannot take. Between them
lie the changes since the last successful sync. At a crash a random number of those changes has reached the disk:
none, all, or up to a byte in the middle (a torn append); in a badly torn outcome each 512-byte sector of the unsynced
part is, on its own, there, zero, or garbage. Bytes which were durable before are never harmed by a later write beside
them: a sector is written whole or not at all. A write over what is there takes part in all this like one at the end.

A failed sync says nothing about what was written, and the operating system may then call the pages clean. So the
changes it should have covered stay in *doubt* for ever: a later successful sync makes their length durable but does
not vouch for their bytes, unless they were written again.

A directory (:class:`DiskDirectory`) is a map from name to inode and the changes since its last sync. At a crash each
change happens or not, independently, except that a change needs all earlier changes on the names it touches. A
directory's own name stands in the one above it: until that was synced a crash may take the directory with all in it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

SECTOR: Final = 512


@dataclass(slots=True)
class Write:
    """Bytes written at ``offset``; ``doubtful`` once a sync that should have covered them failed."""

    offset: int
    data: bytearray
    doubtful: bool = False


@dataclass(slots=True)
class Truncate:
    """The file was cut, or extended with zeros, to ``size``."""

    size: int


class Inode:
    """One file's content, whatever its name."""

    def __init__(self, durable: bytes = b"") -> None:
        self.view = bytearray(durable)
        self._durable = bytearray(durable)
        self.allocated = 0
        """Bytes of the disk that it was promised; they hold nothing."""
        self._pending: list[Write | Truncate] = []
        self._doubt: list[tuple[int, int]] = []

    @property
    def unsynced(self) -> bool:
        return bool(self._pending)

    @property
    def taken(self) -> int:
        """What it takes of the disk."""
        return max(len(self.view), self.allocated)

    def append(self, data: bytes) -> None:
        self.write(len(self.view), data)

    def write(self, at: int, data: bytes) -> None:
        if data:
            change = Write(at, bytearray(data))
            self._pending.append(change)
            _apply(self.view, change)

    def truncate(self, size: int) -> None:
        if size != len(self.view):
            self._pending.append(Truncate(size))
            _resize(self.view, size)

    def sync(self) -> None:
        """Everything pending is durable, except what an earlier sync failed on."""
        for change in self._pending:
            _apply(self._durable, change)
            if isinstance(change, Truncate):
                self._doubt = [(start, min(end, change.size)) for start, end in self._doubt if start < change.size]
                continue
            self._doubt = _without(self._doubt, change.offset, change.offset + len(change.data))
            if change.doubtful:
                self._doubt.append((change.offset, change.offset + len(change.data)))
        self._pending.clear()

    def fail_sync(self) -> None:
        for change in self._pending:
            if isinstance(change, Write):
                change.doubtful = True

    def flip_bit(self, offset: int, bit: int) -> None:
        """The medium changed a bit, wherever the byte is now."""
        if not 0 <= offset < len(self.view):
            raise IndexError(f"no byte {offset} in a file of {len(self.view)} bytes")
        self.view[offset] ^= 1 << bit
        if offset < len(self._durable):
            self._durable[offset] ^= 1 << bit
        for change in self._pending:
            if isinstance(change, Write) and 0 <= offset - change.offset < len(change.data):
                change.data[offset - change.offset] ^= 1 << bit

    def after_crash(self, rng: random.Random) -> Inode:
        """A new inode with one of the contents that may be found."""
        image = bytearray(self._durable)
        unvouched = list(self._doubt)
        total = sum(_weight(change) for change in self._pending)
        arrived = rng.choice((0, total, rng.randint(0, total)))
        for change in self._pending:
            taken = min(_weight(change), arrived)
            arrived -= taken
            if taken == 0:
                break
            if isinstance(change, Truncate):
                _resize(image, change.size)
                unvouched = [(start, min(end, change.size)) for start, end in unvouched if start < change.size]
            else:
                _apply(image, Write(change.offset, change.data[:taken]))
                unvouched.append((change.offset, change.offset + taken))
        damage = rng.choice((0.0, 0.0, 0.3, 0.9))
        for start, end in _joined(unvouched):
            _damage(image, start, end, damage, rng)
        found = Inode(bytes(image))
        found.allocated = self.allocated
        return found


def _weight(change: Write | Truncate) -> int:
    return len(change.data) if isinstance(change, Write) else 1


def _apply(image: bytearray, change: Write | Truncate) -> None:
    if isinstance(change, Truncate):
        _resize(image, change.size)
    else:
        if len(image) < change.offset:
            _resize(image, change.offset)
        image[change.offset : change.offset + len(change.data)] = change.data


def _resize(image: bytearray, size: int) -> None:
    if size < len(image):
        del image[size:]
    else:
        image.extend(bytes(size - len(image)))


def _without(extents: list[tuple[int, int]], start: int, end: int) -> list[tuple[int, int]]:
    """The extents without what lies between ``start`` and ``end``."""
    parts = [part for one in extents for part in ((one[0], min(one[1], start)), (max(one[0], end), one[1]))]
    return [part for part in parts if part[0] < part[1]]


def _joined(extents: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Neighbours as one, so that a sector which two appends share has one fate."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(extents):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined


def _damage(image: bytearray, start: int, end: int, damage: float, rng: random.Random) -> None:
    """Sector by sector: leave, zero or fill with garbage, but only between ``start`` and ``end``."""
    position = start
    while position < end:
        stop = min(end, (position // SECTOR + 1) * SECTOR)
        if rng.random() < damage:
            image[position:stop] = rng.randbytes(stop - position) if rng.random() < 0.3 else bytes(stop - position)
        position = stop


class DirectoryVerb(Enum):
    CREATE = "create"
    RENAME = "rename"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True)
class DirectoryChange:
    verb: DirectoryVerb
    names: tuple[str, ...]
    inode: Inode | None = None


@dataclass(slots=True)
class DiskDirectory:
    """Names now, names that a crash cannot take, and what happened between."""

    live: dict[str, Inode] = field(default_factory=dict)
    _durable: dict[str, Inode] = field(default_factory=dict)
    _pending: list[DirectoryChange] = field(default_factory=list)
    named: bool = True
    """Whether its own name is durable."""

    @property
    def unsynced(self) -> bool:
        return bool(self._pending) or not self.named

    def create(self, name: str) -> Inode:
        inode = Inode()
        self._change(DirectoryChange(DirectoryVerb.CREATE, (name,), inode))
        return inode

    def rename(self, old: str, new: str) -> None:
        if old not in self.live:
            raise FileNotFoundError(2, "no such file", old)
        if old != new:
            self._change(DirectoryChange(DirectoryVerb.RENAME, (old, new)))

    def remove(self, name: str) -> None:
        if name not in self.live:
            raise FileNotFoundError(2, "no such file", name)
        self._change(DirectoryChange(DirectoryVerb.REMOVE, (name,)))

    def _change(self, change: DirectoryChange) -> None:
        _rename(self.live, change)
        self._pending.append(change)

    def sync(self) -> None:
        self._durable = dict(self.live)
        self._pending.clear()

    def after_crash(self, rng: random.Random) -> DiskDirectory:
        """A directory as it may be found, each file with a content that may be found."""
        if not self.named and rng.random() < 0.5:
            return DiskDirectory(named=False)
        names = dict(self._durable)
        happens = rng.choice((0.0, 0.5, 0.5, 1.0))
        undone: set[str] = set()
        for change in self._pending:
            if rng.random() < happens and undone.isdisjoint(change.names):
                _rename(names, change)
            else:
                undone.update(change.names)
        fresh = {name: inode.after_crash(rng) for name, inode in sorted(names.items(), key=lambda item: item[0])}
        return DiskDirectory(live=fresh, _durable=dict(fresh), named=self.named)


def _rename(names: dict[str, Inode], change: DirectoryChange) -> None:
    if change.verb is DirectoryVerb.CREATE:
        assert change.inode is not None
        names[change.names[0]] = change.inode
    elif change.verb is DirectoryVerb.RENAME:
        names[change.names[1]] = names.pop(change.names[0])
    else:
        del names[change.names[0]]
