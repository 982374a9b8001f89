"""What a topic needs from below (storage) and from above (the connection), as protocols.

Ordinals: inside the broker an entry is one int, counted from 0 for the first entry ever written to the topic, dense
and increasing across ledgers. ``(ledger, entry)`` appears only in :class:`EntryRun`, for the frames that clients read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from magnetar.model.errors import MagnetarError, PersistenceError
from magnetar.model.ids import Position
from magnetar.model.ordinal_bitmap import OrdinalBitmap
from magnetar.storage.ledgers.ledger import LedgerTable

Done: TypeAlias = Callable[[], None]
DurableAnswer: TypeAlias = Callable[[MagnetarError | None], None]


def notify(done: Done | None) -> None:
    """Call ``done`` if there is one."""
    if done is not None:
        done()


class SentTotals(NamedTuple):
    """What a topic's subscriptions have delivered, what went out again included."""

    messages: int
    bytes: int


class EntryRun(Protocol):
    """Consecutive entries of one ledger; never changed after it was made."""

    @property
    def first(self) -> int:
        """Ordinal of ``entries[0]``; ``entries[i]`` is at ``(ledger, entry + i)``."""
        ...

    @property
    def ledger(self) -> int: ...
    @property
    def entry(self) -> int: ...
    @property
    def entries(self) -> list[bytes]:
        """The entries as stored: checksum, metadata, payload."""
        ...

    @property
    def counts(self) -> list[int] | None:
        """Messages per entry; None: one each."""
        ...

    @property
    def message_index(self) -> int:
        """How many messages the topic ever had before the first of these; below 0: not known."""
        ...


class Log(Protocol):
    """The topic's managed ledger, as far as reading goes."""

    @property
    def first(self) -> int:
        """Lowest retained ordinal."""
        ...

    @property
    def end(self) -> int:
        """Ordinal after the last durable entry; nothing from here on may be delivered."""
        ...

    def cached(self, start: int, entries_max: int, bytes_max: int) -> EntryRun | None:
        """Return at once, from memory, at least one entry, beginning at ``start``."""
        ...

    def read(self, start: int, entries_max: int, bytes_max: int, done: Callable[[EntryRun | Exception], None]) -> None:
        """Read from disk; ``done`` is called on the loop later. Begins at ``first`` if ``start`` was trimmed."""
        ...

    def position(self, ordinal: int) -> Position: ...
    def ordinal(self, position: Position) -> int: ...
    def exact_ordinal(self, position: Position) -> int | None: ...


class RemainingIndexes(Protocol):
    """Who knows what is left of batches that were acknowledged in part."""

    @property
    def has_partial_batches(self) -> bool:
        """False: no entry has acknowledged batch indexes, so there is nothing to ask for."""
        ...

    def remaining_indexes(self, ordinal: int) -> tuple[int, ...]: ...


class WritableLog(Log, Protocol):
    """What the connection needs of a log: a place for entries, and which ids exist."""

    @property
    def name(self) -> str:
        """The topic's full name."""
        ...

    @property
    def table(self) -> LedgerTable: ...

    @property
    def next(self) -> int:
        """Ordinal of the next entry to be appended."""
        ...

    def append(self, entry: bytes, messages: int, tag: Any) -> int:
        """Fix the place of ``entry``; ``tag`` is a ``publish.producer.PendingEntry`` and comes back with the result."""
        ...

    def append_all(self, entries: list[bytes], tags: Sequence[Any]) -> None:
        """Do the same for entries of one message each, in order."""
        ...

    def barrier(self, done: Done, failed: Callable[[PersistenceError], None] | None = None) -> None:
        """Call ``done`` when everything appended before has its result."""
        ...

    def exact_ordinal(self, position: Position) -> int | None: ...


class SubscriptionCursor(Protocol):
    """One subscription's acknowledgements, durable or not. ``durable`` is always called, once, later or at once."""

    attended: bool
    """Whether a consumer is connected: large entries are kept in memory for those only."""

    @property
    def mark_delete(self) -> int:
        """Every ordinal up to this one is acknowledged."""
        ...

    @property
    def has_partial_batches(self) -> bool:
        """False: no entry has acknowledged batch indexes, so there is nothing to ask for."""
        ...

    @property
    def jumped(self) -> int:
        """Entries lost because they were trimmed before they were acknowledged."""
        ...

    @property
    def times_written(self) -> int:
        """How often what was acknowledged was written since the start."""
        ...

    @property
    def properties(self) -> Mapping[str, Any]:
        """The subscription's properties, shown in statistics."""
        ...

    def acknowledge(self, ordinals: Sequence[int], durable: Done | None = None) -> None: ...
    def acknowledge_until(self, ordinal: int, durable: Done | None = None) -> None: ...
    def acknowledge_indexes(
        self, ordinal: int, remaining: tuple[int, ...], batch_size: int, durable: Done | None = None
    ) -> bool: ...
    def acknowledged(self, ordinal: int) -> bool: ...
    def next_unacknowledged(self, ordinal: int) -> int: ...
    def next_acknowledged(self, ordinal: int, stop: int) -> int: ...
    def remaining_indexes(self, ordinal: int) -> tuple[int, ...]: ...
    def reset(self, ordinal: int, durable: Done | None = None) -> None: ...
    def backlog(self) -> int: ...
    def acknowledged_ranges(self, at: int = 0) -> Iterator[tuple[int, int]]:
        """Above the mark, from ordinal ``at`` on: ascending, half-open."""
        ...

    @property
    def acknowledged_stretches(self) -> int:
        """How many those are: there may be half a million."""
        ...

    def acknowledged_of(self, ordinals: OrdinalBitmap, stop: int) -> int:
        """How many of ``ordinals`` above the mark and below ``stop`` are acknowledged."""
        ...

    def unacknowledged(self, start: int, stop: int) -> int:
        """How many ordinals of ``[start, stop)`` are not acknowledged."""
        ...

    def trimmed(self) -> None:
        """The log lost its front: jump to the first retained entry (rule 4.3.2)."""
        ...


class ConsumerConnection(Protocol):
    """The connection of one consumer, as its subscription sees it. No call may come back into the subscription."""

    @property
    def writable(self) -> bool:
        """False: above the high-water mark. The connection calls ``Subscription.resume`` when that is over."""
        ...

    def deliver(self, run: EntryRun, start: int, stop: int, epoch: int | None) -> None:
        """``run.entries[start:stop]``, whole and for the first time: the hot path."""
        ...

    def deliver_picked(self, run: EntryRun, indexes: Sequence[int], epoch: int | None) -> None:
        """The same for the entries of ``run`` at ``indexes``, ascending: what Key_Shared gives to one of several."""
        ...

    def deliver_one(
        self, run: EntryRun, index: int, redelivery_count: int, ack_set: tuple[int, ...], epoch: int | None
    ) -> None:
        """``run.entries[index]`` with what a MESSAGE carries beside it (rules 5.7.8, 5.8.3, 5.8.5)."""
        ...

    def deliver_unstored(self, entries: Sequence[bytes]) -> None:
        """Entries of a non-persistent topic: all have the id 0:0 (rule 13.5)."""
        ...

    def active_change(self, active: bool) -> None: ...
    def close(self) -> None:
        """CLOSE_CONSUMER: seek, unload, delete. The subscription has forgotten the consumer already."""
        ...

    def end_of_topic(self) -> None: ...
