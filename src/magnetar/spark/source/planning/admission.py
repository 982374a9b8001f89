"""How far the next micro-batch goes: pure arithmetic over the entries of the log (docs/decisions/009).

Input is, per topic-partition, the entries (with their numbers of messages, bytes and publish time) from where the query
is on. All partitions advance to one publish time: entries are admitted in the order of their publish times until a
limit is reached, so that a watermark does not run ahead of a partition that lags. A limit that falls inside an entry
ends the micro-batch inside that entry, at a message: positions are half-open and know the index in a batch, so the rest
of the entry is the beginning of the next micro-batch, and nothing is left out or repeated.

Every micro-batch has at least one message, whatever its size. Publish times come from producers' clocks; one that goes
backwards within a partition counts as standing still.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from magnetar.client.bulk.entry_info import EntryInfo
from magnetar.client.read_position import START, ReadPosition
from magnetar.spark.options.limits import ReadLimits


class _Piece(NamedTuple):
    """What is left of an entry, in the order of admission."""

    time: int
    topic: str
    ledger: int
    entry: int
    first: int
    """Message from which on; > 0 if a micro-batch ended inside."""
    stop: int
    whole: int
    """Messages of the entry."""
    size: int


def _pieces(topic: str, entries: Sequence[EntryInfo], start: ReadPosition, end: ReadPosition) -> Iterator[_Piece]:
    time = -(1 << 63)
    for one in entries:
        at = (one.ledger, one.entry)
        if at < start[:2] or at > end[:2]:
            continue
        first = start.batch if at == start[:2] else 0
        stop = min(one.messages, end.batch) if at == end[:2] else one.messages
        if first < stop:
            time = max(time, one.publish_time)
            yield _Piece(time, topic, one.ledger, one.entry, first, stop, one.messages, one.size)


def waiting(entries: Sequence[EntryInfo], start: ReadPosition, end: ReadPosition) -> tuple[int, int]:
    """Return the messages and bytes between two positions."""
    messages = size = 0
    for piece in _pieces("", entries, start, end):
        messages += piece.stop - piece.first
        size += piece.size * (piece.stop - piece.first) // max(piece.whole, 1)
    return messages, size


def admit(
    entries: Mapping[str, Sequence[EntryInfo]],
    start: Mapping[str, ReadPosition],
    end: Mapping[str, ReadPosition],
    limits: ReadLimits,
) -> dict[str, ReadPosition]:
    """Return where the micro-batch ends that begins at ``start``, at most at ``end``.

    ``entries`` must know everything between the two. Where all of it is admitted, the answer is ``end`` itself, after
    entries that hold no messages for readers.
    """
    found = {topic: start.get(topic, START) for topic in {*start, *end}}
    streams = [_pieces(topic, entries.get(topic, ()), found[topic], end[topic]) for topic in sorted(end)]
    messages = size = 0
    for piece in heapq.merge(*streams):
        count = piece.stop - piece.first
        room = count
        if limits.messages:
            room = min(room, limits.messages - messages)
        if limits.size:
            room = min(room, (limits.size - size) * piece.whole // max(piece.size, 1))
        if messages == 0:
            room = max(room, 1)
        if room < count:
            if room > 0:
                found[piece.topic] = ReadPosition(piece.ledger, piece.entry, piece.first + room)
            return found
        found[piece.topic] = _after(piece, end[piece.topic])
        messages += count
        size += piece.size * count // max(piece.whole, 1)
    return {topic: max(end.get(topic, START), position) for topic, position in found.items()}


def _after(piece: _Piece, end: ReadPosition) -> ReadPosition:
    if piece.stop < piece.whole:
        return end
    return ReadPosition(piece.ledger, piece.entry + 1)
