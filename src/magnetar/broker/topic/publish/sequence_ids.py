"""What deduplication knows of a topic's producers: the highest sequence id of each (rules of 3.4). Pure.

Two numbers per name: *pushed* includes what is in flight, *persisted* only what is durable. A message is judged by
both. The persisted ones are a feature state of the log (:mod:`magnetar.storage.ledgers.feature_state`): they are
written in the block of the very entries that they speak of, so after a crash the log holds an entry exactly if its id
counts as sent.

On disk: a change is a series of ``u8 1 | u32 length | name | i64 id`` (set) and ``u8 0 | u32 length | name``
(forgotten), a snapshot a version byte, 1, and such a series of sets, the longest unused name first.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from typing import Final

from magnetar.storage.ledgers.feature_state import StateChange

_NAME: Final = struct.Struct("<BI")
_ID: Final = struct.Struct("<q")
_FORGOTTEN, _SET = 0, 1
_VERSION: Final = b"\x01"


class Verdict(Enum):
    """The verdict on one message."""

    NEW = "new"
    DUPLICATE = "duplicate"
    """All of it is on disk."""
    OVERLAP = "overlap"
    """A batch that begins with what is on disk and ends with what is not."""
    UNKNOWN = "unknown"
    """The first one of that id is still in flight (rule 3.4.4)."""


class SequenceIds:
    """Sequence ids by producer name; a :class:`magnetar.storage.ledgers.feature_state.DurableState`."""

    def __init__(self, snapshot: bytes | None = None, changes: Sequence[bytes] = ()) -> None:
        self._persisted: dict[str, int] = {}
        """Least recently used first."""
        if snapshot:
            self._apply(snapshot, len(_VERSION))
        for change in changes:
            self._apply(change, 0)
        self._pushed = dict(self._persisted)
        self._fresh: dict[str, int] = {}
        self._writing: dict[str, int] = {}
        self._forgotten: set[str] = set()
        self._forgetting: set[str] = set()

    def __len__(self) -> int:
        return len(self._pushed)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._persisted))

    def last(self, name: str) -> int:
        """The highest durable id, -1 if nothing is known."""
        return self._persisted.get(name, -1)

    def settled(self, name: str) -> bool:
        """Whether nothing of this producer is in flight."""
        return self._pushed.get(name) == self._persisted.get(name)

    def judge(self, name: str, sequence_id: int, highest: int) -> Verdict:
        """``highest`` is that of a batch, or ``sequence_id``."""
        pushed = self._pushed.get(name)
        if pushed is None or sequence_id > pushed:
            return Verdict.NEW
        persisted = self._persisted.get(name)
        if persisted is None or sequence_id > persisted:
            return Verdict.UNKNOWN
        if highest <= persisted:
            return Verdict.DUPLICATE
        return Verdict.OVERLAP if highest > pushed else Verdict.UNKNOWN

    def push(self, name: str, highest: int) -> None:
        """An entry of this id was appended to the log."""
        self._pushed[name] = self._fresh[name] = highest

    def forget(self, names: Iterable[str]) -> None:
        """They may begin anew."""
        for name in names:
            if self._persisted.pop(name, None) is not None:
                self._forgotten.add(name)
            self._pushed.pop(name, None)

    def oldest(self, count: int, keep: Callable[[str], bool]) -> list[str]:
        """Up to so many names that were not used for longest, without those to ``keep``."""
        found: list[str] = []
        for name in self._persisted:
            if len(found) >= count:
                break
            if not keep(name):
                found.append(name)
        return found

    # feature state
    # -------------------------------------------------------------------------------------------------------

    def changes(self) -> StateChange | None:
        """See :class:`magnetar.storage.ledgers.feature_state.DurableState`."""
        if not self._fresh and not self._forgotten:
            return None
        self._writing, self._fresh = self._fresh, {}
        self._forgetting, self._forgotten = self._forgotten, set()
        parts: list[bytes] = []
        for name in self._forgetting:
            text = name.encode("utf-8", "surrogateescape")
            parts += (_NAME.pack(_FORGOTTEN, len(text)), text)
        return StateChange(b"".join(parts) + _series(self._writing))

    def durable(self) -> None:
        """See :class:`magnetar.storage.ledgers.feature_state.DurableState`."""
        persisted = self._persisted
        written, self._writing = self._writing, {}
        for name, highest in written.items():
            persisted.pop(name, None)
            persisted[name] = highest
        self._forgetting = set()

    def lost(self) -> None:
        """See :class:`magnetar.storage.ledgers.feature_state.DurableState`."""
        self._fresh = {}
        self._forgotten |= self._forgetting
        self._forgetting = set()
        self._pushed = dict(self._persisted)

    def snapshot(self) -> bytes:
        """See :class:`magnetar.storage.ledgers.feature_state.DurableState`."""
        return _VERSION + _series(self._persisted)

    def _apply(self, data: bytes, at: int) -> None:
        persisted = self._persisted
        while at < len(data):
            operation, size = _NAME.unpack_from(data, at)
            at += _NAME.size
            name = data[at : at + size].decode("utf-8", "surrogateescape")
            at += size
            persisted.pop(name, None)
            if operation == _SET:
                (persisted[name],) = _ID.unpack_from(data, at)
                at += _ID.size


def _series(ids: dict[str, int]) -> bytes:
    parts: list[bytes] = []
    for name, highest in ids.items():
        text = name.encode("utf-8", "surrogateescape")
        parts += (_NAME.pack(_SET, len(text)), text, _ID.pack(highest))
    return b"".join(parts)
