"""What compaction keeps, against the last message per key of the log itself (rules 4.7.4, 14.13)."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from magnetar.compaction.messages import UnreadableEntry, inspect_entry, last_index
from magnetar.compaction.survivors import Survivors
from magnetar.protocol.compression import CompressionType, decompress
from magnetar.protocol.entries import (
    build_entry,
    metadata_of,
    payload_of,
    split_batch,
)
from tests.support.compaction_messages import BASE, Message, batch, entries, single


def inside_of(entry: bytes) -> list[tuple[str | None, bytes] | None]:
    """Keys and values; None where a message was compacted out."""
    metadata = metadata_of(entry)
    if metadata.num_messages_in_batch is None:
        return [(metadata.partition_key, payload_of(entry))]
    plain = decompress(metadata.compression, payload_of(entry), metadata.uncompressed_size, 1 << 20)
    return [
        None if one.compacted_out else (one.partition_key, value)
        for one, value in split_batch(plain, metadata.num_messages_in_batch)
    ]


def compacted(log: list[bytes], *, retain_keyless: bool = False) -> dict[int, bytes]:
    survivors = Survivors(retain_keyless=retain_keyless)
    for ordinal, entry in enumerate(log):
        survivors.note(ordinal, inspect_entry(entry))
    kept = {ordinal: survivors.kept(ordinal, inspect_entry(entry), entry) for ordinal, entry in enumerate(log)}
    return {ordinal: entry for ordinal, entry in kept.items() if entry is not None}


def naive(log: list[list[Message] | Message], *, retain_keyless: bool) -> set[tuple[int, int]]:
    """(entry, index) of what must stay: the last message of each key, if it says something."""
    last: dict[str, tuple[int, int]] = {}
    keyless = set()
    for ordinal, entry in enumerate(log):
        for index, message in enumerate(entry if isinstance(entry, list) else [entry]):
            if message.key is None:
                keyless.add((ordinal, index))
            elif message.value or not (isinstance(entry, list) or message.size_said):
                last[message.key] = (ordinal, index)
            else:
                last.pop(message.key, None)
    return {*last.values(), *(keyless if retain_keyless else ())}


@settings(max_examples=300, deadline=None)
@given(st.lists(entries, max_size=25), st.booleans(), st.integers(0, 25))
def test_it_is_the_last_value_per_key(
    drawn: list[Message | tuple[list[Message], CompressionType, bool]], retain_keyless: bool, cut: int
) -> None:
    model: list[list[Message] | Message] = [one if isinstance(one, Message) else one[0] for one in drawn]
    log = [single(one) if isinstance(one, Message) else batch(one[0], one[1]) for one in drawn]
    kept = compacted(log, retain_keyless=retain_keyless)
    there = {
        (ordinal, index)
        for ordinal, entry in kept.items()
        for index, message in enumerate(inside_of(entry))
        if message is not None
    }
    assert there == naive(model, retain_keyless=retain_keyless)
    for ordinal, entry in kept.items():
        before, after = inside_of(log[ordinal]), inside_of(entry)
        assert len(after) == len(before), "every message keeps its index"
        assert all(new in (None, old) for old, new in zip(before, after, strict=True))
        if after == before:
            assert entry == log[ordinal], "nothing goes: byte for byte"
        assert last_index(entry) == (
            -1 if len(after) == 1 else max(i for i, message in enumerate(after) if message is not None)
        )
    again = compacted([kept.get(i, single(Message(None, b"x"))) for i in range(len(log))], retain_keyless=False)
    if not retain_keyless:
        assert again == kept, "compacting what is compacted changes nothing"
    # in two steps, the first up to ``cut``: the same
    front = compacted(log[:cut], retain_keyless=retain_keyless)
    places = [*sorted(front), *range(min(cut, len(log)), len(log))]
    both = compacted([front.get(p, log[p]) for p in places], retain_keyless=retain_keyless)
    assert {places[i]: inside_of(entry) for i, entry in both.items()} == {
        ordinal: inside_of(entry) for ordinal, entry in kept.items()
    }


def test_encrypted_batches_count_as_one_message() -> None:
    """Observed on Apache Pulsar 4.0.8: the key is that of the metadata; without one it is dropped."""
    one = batch([Message("x", b"1"), Message("y", b"2")], CompressionType.NONE, encrypted=True, key="x")
    two = batch([Message("x", b"3")], CompressionType.NONE, encrypted=True, key="x")
    keyless = batch([Message("z", b"4")], CompressionType.NONE, encrypted=True)
    assert compacted([one, two, keyless]) == {1: two}
    assert compacted([one, keyless]) == {0: one}


def test_a_batch_that_cannot_be_read_stays() -> None:
    broken = build_entry(replace(BASE, num_messages_in_batch=3, partition_key="a"), b"\0\0\0\x7f")
    assert inspect_entry(broken) == UnreadableEntry()
    assert compacted([broken, single(Message("a", b"1"))]) == {0: broken, 1: single(Message("a", b"1"))}
    assert inspect_entry(b"no entry") == UnreadableEntry()


def test_a_null_value_deletes_its_key() -> None:
    """Sent without uncompressed_size by C++ and Python; kept as an empty message by Apache Pulsar 4.0.8."""
    null = build_entry(replace(BASE, partition_key="a", null_value=True), b"")
    assert not compacted([single(Message("a", b"1")), null])


def test_markers_go() -> None:
    marker = build_entry(replace(BASE, marker_type=22, partition_key="a"), b"")
    assert compacted([single(Message("a", b"1")), marker]) == {0: single(Message("a", b"1"))}


def chunk(key: str, uuid: str, number: int, of: int) -> bytes:
    metadata = replace(
        BASE, partition_key=key, uuid=uuid, chunk_id=number, num_chunks_from_msg=of, total_chunk_msg_size=9
    )
    return build_entry(replace(metadata, uncompressed_size=9), b"c%d" % number)


def test_chunks_stay_or_go_together() -> None:
    """Apache Pulsar 4.0.8 keeps the last chunk alone, of which no client can make a message."""
    first = [chunk("a", "u1", i, 3) for i in range(3)]
    second = [chunk("a", "u2", i, 2) for i in range(2)]
    assert list(compacted([*first, *second])) == [3, 4]
    assert list(compacted([*first, second[0]])) == [0, 1, 2, 3], "the rest may still come"
    assert list(compacted([*first, single(Message("a", b"1"))])) == [3]
    assert not compacted([*first, single(Message("a", b""))])
    assert list(compacted([*first, single(Message("a", b"", size_said=False))])) == [3]


def test_what_is_counted_as_removed() -> None:
    """Observed on Apache Pulsar 4.0.8: replaced values, messages without key, deletions."""
    survivors = Survivors(retain_keyless=False)
    log = [Message("a", b"1"), Message("b", b"1"), Message("a", b"2"), Message(None, b"x"), Message("c", b"1")]
    entries = [single(message) for message in log]
    entries.append(batch([Message("c", b""), Message("d", b"1")], CompressionType.LZ4))
    for ordinal, entry in enumerate(entries):
        survivors.note(ordinal, inspect_entry(entry))
    assert survivors.removed == 3
    assert survivors.keys == 3
