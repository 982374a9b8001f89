"""The last event of every key in a range of a topic, found by kernels without an object per message.

A hash table with open addressing: ``slots`` holds numbers of rows, a row is a key with its last event. The
bytes of all keys lie one after the other in an arena. Room is made before a kernel runs, so kernels never stop half
way. Of two events of a key the one with the greater place stays, in whatever order they come.

Batches are read twice: a batch that cannot be read whole has no events at all, as in
:func:`magnetar.compaction.messages.inspect_entry`. What the kernel cannot decide is left to that function.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from magnetar.columnar.entries.message_metadata import (
    FACT_COMPACTED_OUT,
    FACT_COUNT,
    FACT_KEY,
    FACT_KEY_STOP,
    FACT_SIZE,
    read_facts,
)
from magnetar.columnar.entries.metadata import FLAGS, KEY, KEY_END, NULL_VALUE
from magnetar.columnar.kernels.compiled import kernel
from magnetar.columnar.kernels.protobuf_wire import copy, read_u32, same

if TYPE_CHECKING:
    from numpy.typing import NDArray

UNREADABLE: Final = -1
_ROWS: Final = 1 << 10
_MULTIPLIER: Final = np.uint64(0xFF51AFD7ED558CCD)
_MIXER: Final = np.uint64(0xC4CEB9FE1A85EC53)


class Keys(NamedTuple):
    """Some keys with their last events, as parallel arrays."""

    names: NDArray[np.uint8]
    ends: NDArray[np.int32]
    """End of each name in ``names``; begins with 0."""
    places: NDArray[np.int64]
    over: NDArray[np.bool_]
    """Whether the key is deleted."""


class KeyTable:
    """The last event of every key; entries may be added in any order."""

    def __init__(self) -> None:
        self._arena = np.empty(1 << 14, np.uint8)
        self._ends = np.zeros(_ROWS + 1, np.int64)
        self._places = np.empty(_ROWS, np.int64)
        self._over = np.empty(_ROWS, np.uint8)
        self._hashes = np.empty(_ROWS, np.uint64)
        self._slots = np.full(2 * _ROWS, -1, np.int64)
        self._count = np.zeros(1, np.int64)
        self._facts = np.zeros(FACT_COUNT, np.int64)

    def __len__(self) -> int:
        return int(self._count[0])

    def add_singles(
        self, data: NDArray[np.uint8], table: NDArray[np.int64], wanted: NDArray[np.bool_], places: NDArray[np.int64]
    ) -> None:
        """Add the single messages that are ``wanted`` and have a key; ``table`` is that of `read_heads`."""
        lengths = (table[KEY_END] - table[KEY])[wanted & (table[KEY] >= 0)]
        self._make_room(len(lengths), int(lengths.sum()))
        _note_singles(data, table, wanted.view(np.uint8), places, *self._state())

    def add_batch(self, plain: NDArray[np.uint8], start: int, end: int, count: int, place: int) -> int:
        """Add the batch in ``plain[start:end]``, whose first message has ``place``; return its messages, or
        `UNREADABLE`."""
        there: int = _messages_there(plain, start, end, count, self._facts)
        if there > 0:
            self._make_room(there, end - start)
            _note_batch(plain, start, end, count, place, self._facts, *self._state())
        return there

    def _state(self) -> tuple[Any, ...]:
        return self._arena, self._ends, self._places, self._over, self._hashes, self._slots, self._count

    def _make_room(self, keys: int, size: int) -> None:
        count = len(self)
        used = int(self._ends[count])
        if used + size > len(self._arena):
            self._arena = np.concatenate((self._arena[:used], np.empty(2 * (used + size) - used, np.uint8)))
        if count + keys <= len(self._places):
            return
        rows = 2 * (count + keys)
        for name in ("_places", "_over", "_hashes", "_ends"):
            before: NDArray[Any] = getattr(self, name)
            wider = np.zeros(rows + (name == "_ends"), before.dtype)
            wider[: len(before)] = before
            setattr(self, name, wider)
        self._slots = np.full(1 << (2 * rows - 1).bit_length(), -1, np.int64)
        _put_again(self._hashes, count, self._slots)

    def portions(self, rows: int) -> Iterator[Keys]:
        """Yield all keys, at most ``rows`` at a time."""
        for first in range(0, len(self), rows):
            last = min(first + rows, len(self))
            ends = self._ends[first : last + 1]
            names = self._arena[ends[0] : ends[-1]]
            over = self._over[first:last].view(np.bool_)
            yield Keys(names, (ends - ends[0]).astype(np.int32), self._places[first:last], over)


@kernel
def _hash_of(data: Any, start: Any, end: Any) -> Any:
    number = np.uint64(end - start) * _MULTIPLIER
    at = start
    while at < end:
        word = np.uint64(0)
        for index in range(min(np.int64(8), end - at)):
            word |= np.uint64(data[at + index]) << np.uint64(8 * index)
        number = (number ^ word) * _MIXER
        number ^= number >> np.uint64(33)
        at += 8
    number *= _MULTIPLIER
    return number ^ (number >> np.uint64(29))


@kernel
def _put_again(hashes: Any, count: Any, slots: Any) -> None:
    for row in range(count):
        slot = np.int64(hashes[row] >> np.uint64(1)) & (slots.size - 1)
        while slots[slot] >= 0:
            slot = (slot + 1) & (slots.size - 1)
        slots[slot] = row


@kernel
def _note(
    data: Any, start: Any, end: Any, place: Any, gone: Any,
    arena: Any, ends: Any, places: Any, over: Any, hashes: Any, slots: Any, count: Any,
) -> None:  # fmt: skip
    found = _hash_of(data, start, end)
    slot = np.int64(found >> np.uint64(1)) & (slots.size - 1)
    while slots[slot] >= 0:
        row = slots[slot]
        if hashes[row] == found and same(data, start, end, arena, ends[row], ends[row + 1]):
            if place > places[row]:
                places[row] = place
                over[row] = gone
            return
        slot = (slot + 1) & (slots.size - 1)
    row = slots[slot] = count[0]
    copy(data, start, end, arena, ends[row])
    ends[row + 1] = ends[row] + end - start
    hashes[row] = found
    places[row] = place
    over[row] = gone
    count[0] = row + 1


@kernel
def _note_singles(
    data: Any, table: Any, wanted: Any, first_places: Any,
    arena: Any, ends: Any, places: Any, over: Any, hashes: Any, slots: Any, count: Any,
) -> None:  # fmt: skip
    for index in range(wanted.size):
        if wanted[index] and table[KEY, index] >= 0:
            gone = np.int64(table[FLAGS, index] & NULL_VALUE != 0)
            _note(
                data, table[KEY, index], table[KEY_END, index], first_places[index], gone,
                arena, ends, places, over, hashes, slots, count,
            )  # fmt: skip


@kernel
def next_message(data: Any, at: Any, end: Any, facts: Any) -> Any:
    """Read one message of a batch into ``facts``; return where the next begins, `UNREADABLE` if it cannot be read."""
    if at + 4 > end:
        return np.int64(UNREADABLE)
    body = at + 4 + read_u32(data, at)
    if body > end or not read_facts(data, at + 4, body, facts):
        return np.int64(UNREADABLE)
    stop = body + facts[FACT_SIZE]
    return stop if stop <= end else np.int64(UNREADABLE)


@kernel
def _messages_there(data: Any, at: Any, end: Any, count: Any, facts: Any) -> Any:
    there = np.int64(0)
    for _ in range(count):
        at = next_message(data, at, end, facts)
        if at < 0:
            return np.int64(UNREADABLE)
        there += facts[FACT_COMPACTED_OUT] == 0
    return there


@kernel
def _note_batch(
    data: Any, at: Any, end: Any, count: Any, place: Any, facts: Any,
    arena: Any, ends: Any, places: Any, over: Any, hashes: Any, slots: Any, used: Any,
) -> None:  # fmt: skip
    for index in range(count):
        at = next_message(data, at, end, facts)
        if facts[FACT_KEY] >= 0 and facts[FACT_COMPACTED_OUT] == 0:
            gone = np.int64(facts[FACT_SIZE] == 0)
            _note(
                data, facts[FACT_KEY], facts[FACT_KEY_STOP], place + index, gone,
                arena, ends, places, over, hashes, slots, used,
            )  # fmt: skip
