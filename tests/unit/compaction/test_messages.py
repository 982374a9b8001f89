"""The last message of a batch that is still there, of entries that can and cannot be looked into (rule 5.9.12)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from magnetar.compaction.messages import (
    COMPACTED_OUT,
    BatchEntry,
    KeyedMessage,
    inspect_entry,
    last_index,
    messages_in,
    rebatch,
    repacked,
)
from magnetar.protocol.entries import EncryptionKey, EntryMetadata, SingleMessageMetadata, build_entry, join_batch

BASE = EntryMetadata("p", 0, 1)


def batch(count: int, *, encrypted: bool = False) -> bytes:
    plain = join_batch((SingleMessageMetadata(partition_key=f"k{i}"), b"v%d" % i) for i in range(count))
    keys = (EncryptionKey("k", b"v"),) if encrypted else ()
    return build_entry(
        replace(BASE, num_messages_in_batch=count, uncompressed_size=len(plain), encryption_keys=keys), plain
    )


def cut_off(entry: bytes) -> list[bytes]:
    """All that end within the metadata."""
    return [entry[:end] for end in range(10 + int.from_bytes(entry[6:10], "big"))]


@pytest.mark.parametrize("count", [2, 3, 5])
def test_the_last_of_a_batch_is_the_last_that_stays(count: int) -> None:
    assert last_index(batch(count)) == count - 1
    for kept in range(1 << count):
        keep = {i for i in range(count) if kept >> i & 1}
        rest = rebatch(batch(count), keep)
        assert last_index(rest) == max(keep, default=-1)
        assert inspect_entry(rest) == BatchEntry(
            [KeyedMessage(f"k{i}", False) if i in keep else None for i in range(count)]
        )
        assert messages_in(rest) == count, "those that are gone are counted"


def test_what_is_none_of_several_has_no_index() -> None:
    assert last_index(build_entry(BASE, b"x")) == -1
    assert last_index(batch(1)) == -1
    for nothing in (b"", b"no entry at all", *cut_off(batch(2, encrypted=True))):
        assert (last_index(nothing), messages_in(nothing)) == (-1, 1)
    assert messages_in(build_entry(BASE, b"x")) == messages_in(batch(1)) == 1


@pytest.mark.parametrize("count", [2, 3])
def test_of_a_batch_that_cannot_be_looked_into_everything_is_there(count: int) -> None:
    assert last_index(batch(count, encrypted=True)) == count - 1
    assert last_index(build_entry(replace(BASE, num_messages_in_batch=count), b"\0\0\0\x7f")) == count - 1


def test_a_batch_of_nothing_but_gone_messages_has_no_last() -> None:
    assert last_index(repacked(batch(3), COMPACTED_OUT * 3)) == -1
    assert last_index(repacked(batch(3), COMPACTED_OUT * 2 + join_batch([(SingleMessageMetadata(), b"x")]))) == 2
