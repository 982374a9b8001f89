"""Chunks become whole messages, each in exactly one range, however ranges cut the log."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.columnar.single_entries.chunk_joiner import ChunkJoiner, ReadableEntry
from magnetar.columnar.single_entries.opener import EntryOpener
from magnetar.model.errors import ProtocolError
from magnetar.protocol.compression import CompressionType, compress
from magnetar.protocol.entries import build_entry, measure, metadata_of, payload_of
from tests.support.chunked_messages import chunks

PATIENCE = 1_000


def read(log: list[bytes], start: int, stop: int) -> list[ReadableEntry]:
    """What a range of the log gives, with what its messages need after it."""
    opener = EntryOpener("t", PATIENCE)
    found = [opener.open(1, number, log[number]) for number in range(start, stop)]
    for data in log[stop:]:
        if not opener.joiner.waiting:
            break
        found.append(opener.continue_(data))
    return [one for one in found if one is not None]


@given(
    st.lists(st.tuples(st.binary(max_size=12), st.integers(1, 5), st.sampled_from(CompressionType)), max_size=6),
    st.randoms(use_true_random=False),
    st.lists(st.integers(0, 30), max_size=4),
    st.sets(st.integers(0, 5), max_size=2),
)  # fmt: skip
def test_every_message_is_in_the_range_of_its_first_chunk(
    sent: list[tuple[bytes, int, CompressionType]], random: object, cuts: list[int], broken: set[int]
) -> None:
    """Chunks are joined by uuid, and each message belongs to the range that holds its first chunk (rule 6.6.1)."""
    queues = [
        (number, chunks(f"u{number}", value, pieces, kind=kind)) for number, (value, pieces, kind) in enumerate(sent)
    ]
    for number, queue in queues:
        if number in broken and len(queue) > 1:
            queue.pop()  # its producer died
    log: list[bytes] = []
    firsts: dict[int, tuple[int, bytes]] = {}
    while waiting := [one for one in queues if one[1]]:
        number, queue = random.choice(waiting)  # type: ignore[attr-defined]  # hypothesis' Random
        value, pieces, _ = sent[number]
        if (len(queue) == pieces and number not in broken) or pieces == 1:
            firsts[len(log)] = (number, value)
        log.append(queue.pop(0))
    borders = sorted({0, len(log), *(cut for cut in cuts if cut < len(log))})
    got: list[tuple[int, bytes]] = []
    for start, stop in itertools.pairwise(borders):
        for one in read(log, start, stop):
            assert start <= one.entry < stop
            metadata = metadata_of(one.data)
            assert (metadata.uuid, metadata.partition_key, metadata.sequence_id) == (None, "k", 7)
            kind = metadata.compression
            value = firsts[one.entry][1]
            assert payload_of(one.data) == compress(kind, value)
            got.append((one.entry, value))
    assert sorted(got) == sorted((entry, value) for entry, (_, value) in firsts.items())


def join(joiner: ChunkJoiner, *entries: bytes) -> list[bytes]:
    found = [joiner.add(1, number, metadata_of(data), payload_of(data)) for number, data in enumerate(entries)]
    return [payload_of(one.data) for one in found if one is not None]


def test_what_is_sent_again_and_what_is_missing() -> None:
    """A first chunk begins the message anew, a known chunk is left out, and a gap ends the message (rule 6.6.4)."""
    a, b, c = chunks("u", b"abcdef", 3)
    assert join(ChunkJoiner(PATIENCE), a, b, a, b, c) == [b"abcdef"]
    assert join(ChunkJoiner(PATIENCE), a, b, b, c) == [b"abcdef"]
    assert join(ChunkJoiner(PATIENCE), a, b, c, a, b, c) == [b"abcdef"] * 2
    assert join(ChunkJoiner(PATIENCE), b, c) == []
    # A reader up to the second beginning leaves the message to the reader of that.
    assert [read([a, b, a, b, c], *cut) for cut in ((0, 2), (0, 1), (1, 2))] == [[], [], []]
    assert [one.entry for one in read([a, b, a, b, c], 2, 3)] == [2]
    joiner = ChunkJoiner(PATIENCE)
    assert join(joiner, a, c, b, c) == []
    (lost,) = joiner.given_up()
    assert str(lost).startswith("the message in chunks that begins at 1:0 (u) is left out: only 1 of its 3 chunks")
    assert joiner.given_up() == []


def test_a_chunk_that_comes_too_late_is_too_late_whenever_it_is_read() -> None:
    a, b = chunks("u", b"abcd", 2)[0], chunks("u", b"abcd", 2, at=PATIENCE + 1)[1]
    joiner = ChunkJoiner(PATIENCE)
    assert join(joiner, a, b) == []
    assert len(joiner.given_up()) == 1
    assert join(ChunkJoiner(PATIENCE), a, chunks("u", b"abcd", 2, at=PATIENCE)[1]) == [b"abcd"]
    joiner = ChunkJoiner(PATIENCE)
    join(joiner, a)
    joiner.give_up(PATIENCE)
    assert joiner.waiting
    joiner.give_up(PATIENCE + 1)
    assert not joiner.waiting


def test_a_message_that_lies_about_its_size() -> None:
    a, b = chunks("u", b"abcd", 2)
    wrong = build_entry(metadata_of(b), b"x")
    with pytest.raises(ProtocolError, match="begins at 1:0 has 3 bytes and not the 4 it says"):
        join(ChunkJoiner(PATIENCE), a, wrong)


def test_a_message_in_chunks_counts_once_where_limits_are_kept() -> None:
    found = [measure(data) for data in chunks("u", b"x" * 600, 3)]
    assert [(one.messages, one.size) for one in found] == [(1, 600), (0, 0), (0, 0)]
