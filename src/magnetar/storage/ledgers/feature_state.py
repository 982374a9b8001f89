"""The durable state of one feature beside one log: deduplication, delays, ... (docs/decisions/006).

Theory of operation. A feature keeps its state in an object of its own (:class:`DurableState`) and calls ``touch`` when
it changed. What changed is asked for once per group and written **in the same block as the log's entries of that
group**: a block counts whole or not at all, so state and entries cannot disagree, whatever crashes when. The way to
have a change in the block of an entry is to append and to touch without giving the loop a turn in between.

What is in flight is not so yet. ``changes`` hands out what the next write will say, then either ``durable`` follows
(these changes, and the entries of their group, are on disk) or ``lost`` (they are not, and neither is anything that
came after them: the log's entries that were not durable are gone, see ``ManagedLedger.on_failed``, which is called
right after). Never is ``changes`` asked again before one of the two. ``snapshot`` is what a checkpoint keeps, so it has
to leave out whatever is not durable: a checkpoint that counted an entry which then fails would be wrong for ever.

After a start the state of a feature is a snapshot and the changes after it, as bytes; ``open`` makes the feature's
object of them. While it is not opened, it is carried from checkpoint to checkpoint as it is. An object once made lives
as long as the log: a topic that is unloaded and loaded again finds it as it was, with what is in flight.

What the bytes mean is the feature's affair, a version byte before a snapshot is good manners. Changes need not be
repeatable: each is handed out once, after the snapshot that lacks it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import NamedTuple, Protocol, TypeVar, cast

from magnetar.storage.log import records
from magnetar.storage.log.journal import Journal
from magnetar.storage.log.log_image import FeatureStateImage
from magnetar.storage.log.write_group import Done


class StateChange(NamedTuple):
    """The part of a state that one write makes durable."""

    data: bytes
    whole: bool = False
    """``data`` is a snapshot and replaces everything before it."""


class DurableState(Protocol):
    """The object of a feature whose state a :class:`FeatureState` keeps."""

    def changes(self) -> StateChange | None:
        """Everything since the last call that is to become durable; None if there is nothing."""
        ...

    def durable(self) -> None:
        """What ``changes`` gave last is on disk."""
        ...

    def lost(self) -> None:
        """Nothing that ``changes`` gave last and nothing since is on disk: go back to what was durable.

        What does not hang on entries may stay, and be part of the next ``changes``: it is asked for again.
        """
        ...

    def snapshot(self) -> bytes:
        """The durable state, without anything that is in flight or waits to be written."""
        ...


class FeatureStateLog(Protocol):
    """The log beside which the state is kept."""

    id: int
    deleted: bool


class _Removal(Enum):
    NONE = 0
    DUE = 1
    """Is written before the next changes."""
    WRITING = 2


S = TypeVar("S", bound=DurableState)


class FeatureState:
    """One feature's place beside one log; made by ``ManagedLedger.feature_state``. Lives on the event loop."""

    __slots__ = ("_changes", "_dirty", "_journal", "_log", "_removal", "_snapshot", "_state", "_writing", "name")

    def __init__(self, log: FeatureStateLog, journal: Journal, name: str) -> None:
        self._log = log
        self._journal = journal
        self.name = name
        self._state: DurableState | None = None
        self._snapshot: bytes | None = None
        self._changes: list[bytes] = []
        self._dirty = False
        """Whether it is in the open group."""
        self._writing: DurableState | None = None
        """Whose changes are being written; after a removal not the one that is open."""
        self._removal = _Removal.NONE

    @property
    def exists(self) -> bool:
        """Whether it is open or something of it is on disk."""
        return self._state is not None or self._snapshot is not None or bool(self._changes)

    def open(self, make: Callable[[bytes | None, Sequence[bytes]], S]) -> S:
        """The feature's object: the one that is open already, else what ``make`` does of snapshot and changes."""
        if self._state is None:
            state = make(self._snapshot, self._changes)
            self._state = state
            self._snapshot = None
            self._changes = []
        return cast("S", self._state)

    def touch(self, done: Done | None = None) -> None:
        """Have the state's changes in the next group; at once if there is a waiter, or with the entries that are waited
        for."""
        if not self._dirty or done is not None:
            self._dirty = True
            self._journal.touch_feature_state(self, done)

    def remove(self, done: Done | None = None) -> None:
        """Forget the state, here and on disk; ``done`` when that is durable. It may be opened again, empty."""
        self._state = None
        self._snapshot = None
        self._changes = []
        self._removal = _Removal.DUE
        self.touch(done)

    # what the journal asks and reports ------------------------------------------------------------------------------

    def render(self) -> list[bytes]:
        """The records of this group."""
        self._dirty = False
        if self._log.deleted:
            return []
        out = []
        if self._removal is not _Removal.NONE:
            self._removal = _Removal.WRITING
            out.append(self._record(records.RecordKind.FEATURE_STATE_REMOVED, b""))
        change = self._state.changes() if self._state is not None else None
        if change is not None:
            self._writing = self._state
            kind = records.RecordKind.FEATURE_STATE if change.whole else records.RecordKind.FEATURE_STATE_CHANGE
            out.append(self._record(kind, change.data))
        return out

    def _record(self, kind: records.RecordKind, data: bytes) -> bytes:
        return records.record(kind, records.feature_state_body(self._log.id, self.name, data))

    def written(self) -> None:
        """The last render is durable."""
        if self._removal is _Removal.WRITING:
            self._removal = _Removal.NONE
        state, self._writing = self._writing, None
        if state is not None:
            state.durable()

    def lost(self) -> None:
        """The last render did not reach the disk, and the open group will not either; the next one asks again."""
        self._dirty = True
        self._writing = None
        if self._removal is _Removal.WRITING:
            self._removal = _Removal.DUE
        if self._state is not None:
            self._state.lost()

    # checkpoint and recovery --------------------------------------------------------------------------------------

    def image(self) -> FeatureStateImage:
        """The durable part, for a checkpoint."""
        if self._state is not None:
            return FeatureStateImage(self.name, self._state.snapshot(), ())
        return FeatureStateImage(self.name, self._snapshot, self._changes)

    def restore(self, image: FeatureStateImage) -> None:
        """Take what a checkpoint held."""
        self._snapshot = image.snapshot
        self._changes = list(image.changes)

    def replay(self, kind: int, data: bytes) -> None:
        """Take a record from disk."""
        if kind == records.RecordKind.FEATURE_STATE_CHANGE:
            self._changes.append(data)
            return
        self._snapshot = data if kind == records.RecordKind.FEATURE_STATE else None
        self._changes.clear()
