"""Hypothesis strategies for every typed command, drawn from the commands' own annotations."""

from __future__ import annotations

from enum import IntEnum
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from magnetar.protocol import codec
from magnetar.protocol.commands import Command, CommandMessage, CommandSend, MessageIdData
from magnetar.protocol.frames import with_checksum

longs = st.one_of(st.integers(-1, 300), st.integers(0, 1 << 22), st.integers(-(1 << 63), (1 << 63) - 1))
"""What Pulsar keeps in a uint64: any long, often small or -1."""

SMALL: dict[str, st.SearchStrategy[int]] = {
    "protocol_version": st.integers(0, 100),
    "max_message_size": st.integers(0, 2**31 - 1),
    "num_messages": st.integers(-1, 2**31 - 1),
    "redelivery_count": st.integers(0, 2**32 - 1),
    "permits": st.integers(0, 2**32 - 1),
    "partitions": st.integers(0, 2**32 - 1),
    "priority_level": st.integers(-(2**31), 2**31 - 1),
    "partition": st.integers(-1, 2**31 - 1),
    "batch_index": st.integers(-1, 2**31 - 1),
    "batch_size": st.integers(0, 2**31 - 1),
    "start": st.integers(0, 65535),
    "end": st.integers(0, 65535),
    "uncompressed_size": st.integers(0, 2**32 - 1),
    "num_messages_in_batch": st.integers(0, 2**31 - 1),
    "marker_type": st.integers(0, 2**31 - 1),
    "num_chunks_from_msg": st.integers(0, 2**31 - 1),
    "total_chunk_msg_size": st.integers(0, 2**31 - 1),
    "chunk_id": st.integers(0, 2**31 - 1),
    "compacted_batch_indexes": st.integers(0, 2**31 - 1),
}
"""Fields of 32 bits."""

entries = st.builds(
    lambda metadata, payload: with_checksum(len(metadata).to_bytes(4, "big") + metadata + payload),
    st.binary(max_size=40),
    st.binary(max_size=200),
)


def of_hint(name: str, hint: Any, depth: int) -> st.SearchStrategy[Any]:
    if get_origin(hint) is tuple:
        inner = get_args(hint)
        if inner[-1] is ...:
            return st.lists(of_hint(name, inner[0], depth), max_size=3).map(tuple)
        values = longs if inner[1] is int else st.text(max_size=10)
        return st.tuples(st.text(max_size=10), values)
    if NoneType in get_args(hint):
        present = next(part for part in get_args(hint) if part is not NoneType)
        if present is MessageIdData and depth > 1:
            return st.none()
        return st.one_of(st.none(), of_hint(name, present, depth))
    if hint is int:
        return SMALL.get(name, longs)
    if hint is bool:
        return st.booleans()
    if hint is str:
        return st.text(max_size=20)
    if hint is bytes:
        return st.binary(max_size=20)
    if hint is float:
        return st.floats(allow_nan=False)
    if issubclass(hint, IntEnum):
        # a negative number has a name for the broker alone and none on the wire
        return st.sampled_from([value for value in hint if value >= 0])
    return instances(hint, depth + 1)


def instances(make: type[Any], depth: int = 0) -> st.SearchStrategy[Any]:
    """Values of one class, every field drawn by its annotation."""
    hints = get_type_hints(make)
    parts: dict[str, st.SearchStrategy[Any]] = {
        name: entries if name == "entry" and make is not MessageIdData else of_hint(name, hint, depth)
        for name, hint in hints.items()
    }
    if make in (CommandSend, CommandMessage):
        parts["checksum_ok"] = st.just(True)
    return st.builds(make, **parts)


commands: st.SearchStrategy[Command] = st.sampled_from(list(codec.NUMBERS)).flatmap(instances)
"""Any command there is."""
