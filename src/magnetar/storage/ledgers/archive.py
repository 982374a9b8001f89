"""Ledgers that were offloaded: what the log keeps of such a ledger, and the seam through which it is read back.

An offloaded ledger lies, whole, as one object outside the directory. The record of that (:class:`Offload`) stands in
the log's own records and checkpoints (``RecordKind.OFFLOADED``), so it is as durable as an entry. While the local
entries are there they are read; when they were released (``Offload.released``) the object is.

How an object is reached and what stands in it is not storage's affair: the store is given an :class:`Archive`.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from magnetar.model.errors import PersistenceError


class Offload(NamedTuple):
    """A ledger's copy: its place and what must be in it."""

    url: str
    """The place: a directory or a bucket with a prefix."""
    name: str
    """The object in that place; never used twice."""
    digest: str
    """The digest of all entries and their message counts, hexadecimal."""
    entries: int
    bytes: int
    """The bytes of all entries together."""
    size: int
    """The size of the object."""
    recorded_ms: int
    """When the object was checked and recorded."""
    released: bool = False
    """The local entries were let go."""

    @property
    def key(self) -> str:
        """Names the object among all."""
        return f"{self.url.rstrip('/')}/{self.name}"

    def to_list(self) -> list[Any]:
        """The list that stands in records and checkpoints."""
        return list(self)

    @classmethod
    def from_list(cls, values: list[Any]) -> Offload:
        """The inverse of :meth:`to_list`; what a later version appended is left out."""
        return cls(*values[: len(cls._fields)])


class ArchivedEntries(NamedTuple):
    """Consecutive entries of one ledger, read back."""

    entry: int
    """Entry id of the first."""
    entries: list[bytes]
    counts: list[int] | None
    """Messages per entry; None: every entry is one."""
    message_index: int
    """Message index of the first message."""


class Archive(Protocol):
    """Reads objects. Called from several threads."""

    def piece(self, offload: Offload, ledger: int, entry: int) -> ArchivedEntries:
        """A handy number of entries, among them ``entry``.

        Raises OSError or PersistenceError if the object is gone, damaged, another ledger's, or cannot be reached.
        """
        ...


class NoArchive:
    """The archive of a store that was not given one: every object is unreadable."""

    def piece(self, offload: Offload, ledger: int, entry: int) -> ArchivedEntries:
        raise PersistenceError("this process was not given a way to read offloaded ledgers")
