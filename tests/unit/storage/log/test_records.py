"""Records and blocks of the log at their edges: what is not whole is refused, and what stands beside it is not read."""

from __future__ import annotations

import random
import struct
from typing import Any

import pytest
from crc32c import crc32c

from magnetar.storage.log import records
from magnetar.storage.log.records import (
    BLOCK_HEADER_SIZE,
    COUNTED,
    EXTENT_HEAD_SIZE,
    MOVED,
    PAGE,
    RECORD_HEADER_SIZE,
    ExtentHead,
    RecordError,
    RecordKind,
)
from magnetar.storage.log.segment import (
    ExtentOffsets,
    SegmentIndex,
    SegmentIndexes,
    Span,
    index_bytes,
    spans_of,
)

PLACE = (7, 8, 9, 10, 11)
SECRET = 0xABCDEF


def extent(entries: list[bytes], counts: list[int] | None = None) -> bytes:
    out: list[Any] = []
    size = records.extent(PLACE, 1234, entries, counts, sum(map(len, entries)), out)
    whole = b"".join(out)
    assert len(whole) == size
    return whole


def block(sequence: int, *parts: bytes, secret: int = SECRET) -> bytes:
    body = b"".join(parts)
    return records.block_header(len(parts), len(body), sequence, secret) + body


EXTENTS: list[tuple[list[bytes], list[int] | None]] = [
    ([b""], None), ([b"x"], None), ([b"x"], [5]), ([b"a", b"", b"ccc"], None), ([b"a", b"", b"ccc"], [1, 2, 3]),
    ([bytes(8191)], None), ([bytes(8192)], None), ([bytes(8193)], None), ([bytes(8192), bytes(8191)], [1, 1]),
    ([bytes(8192), bytes(8192)], None),
]  # fmt: skip


@pytest.mark.parametrize(("entries", "counts"), EXTENTS, ids=lambda one: str(one)[:20])
def test_an_extent_is_read_as_it_was_written(entries: list[bytes], counts: list[int] | None) -> None:
    """Whether its entries were joined for the disk or not, alone and in the middle of others."""
    whole = extent(entries, counts)
    for before, after in ((b"", b""), (b"before", b"after")):
        found = records.read_extent(before + whole + after, len(before))
        assert found.head == ExtentHead(*PLACE, 1234, len(entries))
        assert (found.entries, found.counts) == (entries, counts)
        assert found.size == len(whole) - RECORD_HEADER_SIZE
        raw = records.parse_record(before + whole + after, len(before))
        assert (raw.kind, raw.flags, raw.at) == (RecordKind.EXTENT, COUNTED if counts else 0, len(before))
        assert records.extent_head(raw.body) == found.head
        assert records.extent_counts(raw) == counts


@pytest.mark.parametrize(("entries", "counts"), EXTENTS[:5], ids=lambda one: str(one)[:20])
def test_an_extent_of_which_anything_is_missing_or_changed_is_refused(
    entries: list[bytes], counts: list[int] | None
) -> None:
    whole = extent(entries, counts)
    for at in range(len(whole)):
        for damaged in (whole[:at], whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :]):
            for reading in (records.read_extent, records.parse_record):
                with pytest.raises(RecordError, match="offset 0"):
                    reading(damaged, 0)


def test_another_kind_of_record_is_no_extent() -> None:
    body = bytes(EXTENT_HEAD_SIZE)
    other = records.record(RecordKind.LOG, body)
    assert records.parse_record(other, 0).body == body
    with pytest.raises(RecordError, match="does not match"):
        records.read_extent(other, 0)


@pytest.mark.parametrize("counts", [None, [1, 20, 300, 4000]])
@pytest.mark.parametrize("skip", [0, 1, 3])
def test_what_is_moved_begins_where_its_first_entries_were_left_out(skip: int, counts: list[int] | None) -> None:
    entries = [b"a", b"bb", b"", b"dddd"]
    raw = records.parse_record(extent(entries, counts), 0)
    for again in (raw, records.parse_record(records.moved_extent(raw, 0), 0)):
        moved = records.moved_extent(again, skip)
        assert records.parse_record(moved, 0).flags == MOVED | (COUNTED if counts else 0)
        found = records.read_extent(moved, 0)
        left = skip if counts is None else sum(counts[:skip])
        ledger_place = found.head._replace(entry=0, ordinal=0, message_index=0)
        assert ledger_place == ExtentHead(*PLACE, 1234, 4 - skip)._replace(entry=0, ordinal=0, message_index=0)
        assert (found.head.entry, found.head.ordinal, found.head.message_index) == (
            raw_head(raw).entry + skip, raw_head(raw).ordinal + skip, raw_head(raw).message_index + left,
        )  # fmt: skip
        assert found.entries == entries[skip:]
        assert found.counts == (None if counts is None else counts[skip:])


def raw_head(raw: records.RawRecord) -> ExtentHead:
    return records.extent_head(raw.body)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_block_is_its_header_and_exactly_its_records(count: int) -> None:
    parts = [records.json_record(RecordKind.LOG, n=number) for number in range(count)]
    data = b"xx" + block(5, *parts) + b"yy"
    header = records.parse_block_header(data, 2)
    assert header is not None
    assert (header.records, header.length, header.sequence, header.secret) == (count, sum(map(len, parts)), 5, SECRET)
    found = records.parse_block(data, 2, header)
    assert b"".join(data[one.at : one.at + RECORD_HEADER_SIZE + len(one.body)] for one in found) == b"".join(parts)
    with pytest.raises(RecordError):
        records.parse_block(data, 2, header._replace(records=count + 1))
    for length in (header.length - 1, header.length + 1):
        with pytest.raises(RecordError, match=rf"the block at offset 2 has {length - header.length} bytes more than"):
            records.parse_block(data, 2, header._replace(length=length))


def test_a_block_header_is_checked_to_the_byte() -> None:
    whole = block(1, records.json_record(RecordKind.LOG))
    for at in range(BLOCK_HEADER_SIZE):
        assert records.parse_block_header(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]) is None
        assert records.parse_block_header(whole[:at]) is None
    assert records.parse_block_header(whole[:BLOCK_HEADER_SIZE]) is not None
    assert records.parse_block_header(whole, 1) is None


@pytest.mark.parametrize(
    ("start", "after", "secret", "found"),
    [
        (0, 0, SECRET, 0), (0, 1, SECRET, 1), (1, 0, SECRET, 1), (0, 2, SECRET, 3), (0, 3, SECRET, -1),
        (0, 0, None, 0), (0, 3, None, 2), (0, 9, None, -1), (0, 0, 1, 2), (4, 0, None, -1),
    ],
)  # fmt: skip
def test_the_next_whole_block_is_found_behind_damage(start: int, after: int, secret: int | None, found: int) -> None:
    """One of this directory, if that is known, and later than what was read: damage is proven by it alone."""
    part = records.json_record(RecordKind.LOG, n=1)
    blocks = [block(1, part), block(2, part), block(9, part, secret=1), block(3, part)]
    broken = bytearray(block(7, part))
    broken[-1] ^= 1
    data, places = b"", []
    for one in blocks:
        data += b"junk" + bytes(broken)
        places.append(len(data))
        data += one
    at = [0, *places[1:], len(data)][start]
    assert records.find_block(data, at, after, secret) == (-1 if found < 0 else places[found])


@pytest.mark.parametrize(
    ("at", "end"), [(0, 0), (1, PAGE), (PAGE - 1, PAGE), (PAGE, PAGE), (PAGE + 1, 2 * PAGE)]
)  # fmt: skip
def test_pages_end_at_multiples_of_4096(at: int, end: int) -> None:
    assert PAGE == 4096
    assert records.page_end(at) == end


@pytest.mark.parametrize("data", [b"", b"x", bytes(1000)])
def test_the_state_of_a_feature_has_its_log_and_name_before_it(data: bytes) -> None:
    for name in ("dedup", "ä" * 300):
        assert records.parse_feature_state(records.feature_state_body(77, name, data)) == (77, name, data)


# indexes ---------------------------------------------------------------------------------------------------------


def offsets(*places: tuple[int, int, int]) -> ExtentOffsets:
    made = ExtentOffsets()
    for first, offset, length in places:
        made.add(first, offset, length)
    return made


INDEXED = {
    (1, 10): offsets((5, 100, 20), (8, 200, 30)),
    (1, 11): offsets((20, 300, 1)),
    (2, 12): offsets((0, 400, 2), (3, 500, 3), (9, 600, 4)),
}


def span(log: int, ledger: int, first: int) -> Span:
    return Span(log, 3, ledger, first, first + 1, 0)


def test_an_index_gives_the_places_that_it_was_made_of() -> None:
    index = SegmentIndex(3, index_bytes(3, spans_of(3, INDEXED)))
    assert sorted(index.extents()) == [
        (1, 5, 100, 20), (1, 8, 200, 30), (1, 20, 300, 1), (2, 0, 400, 2), (2, 3, 500, 3), (2, 9, 600, 4)
    ]  # fmt: skip
    for (log, ledger), places in INDEXED.items():
        for first in (places.firsts[0], places.firsts[0] + 1, places.firsts[-1] + 50):
            assert index.places(span(log, ledger, first)).to_bytes() == places.to_bytes()
    for unknown in (span(1, 12, 50), span(3, 10, 50), span(1, 10, 4), span(2, 10, 9)):
        with pytest.raises(RecordError, match=f"does not list log {unknown.log} from {unknown.first}"):
            index.places(unknown)


def test_an_index_that_is_damaged_or_anothers_is_refused() -> None:
    whole = index_bytes(3, spans_of(3, INDEXED))
    for at in range(len(whole)):
        for damaged in (whole[:at], whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]):
            with pytest.raises(RecordError, match=r"the checksum of segment-.* does not match"):
                SegmentIndex(3, damaged)
    with pytest.raises(RecordError, match="is not the index of this segment"):
        SegmentIndex(4, whole)
    body = b"anything" + whole[8:-4]
    with pytest.raises(RecordError, match="is not the index of this segment"):
        SegmentIndex(3, body + struct.pack("<I", crc32c(body)))


class Backend:
    """Counts what is read."""

    def __init__(self) -> None:
        self.reads: list[int] = []

    def read_index(self, number: int) -> bytes:
        self.reads.append(number)
        return index_bytes(number, spans_of(number, INDEXED))


def test_the_indexes_read_last_are_kept_and_a_span_that_knows_its_places_needs_none() -> None:
    backend = Backend()
    indexes = SegmentIndexes(backend)  # type: ignore[arg-type]
    known = Span(1, 1, 10, 5, 9, 0)
    known.places = INDEXED[1, 10]
    assert indexes.places(known) is known.places and backend.reads == []

    def ask(number: int) -> bool:
        """Whether it was read from the disk."""
        before = len(backend.reads)
        found = indexes.places(Span(1, number, 10, 5, 9, 0))
        assert found.to_bytes() == INDEXED[1, 10].to_bytes()
        return len(backend.reads) > before

    numbers = list(range(1, 65))
    assert all(map(ask, numbers)) and not any(map(ask, numbers))
    assert ask(65) and not ask(65) and not ask(2)
    assert ask(1), "it was read first"
    indexes.forget(5)
    indexes.forget(99)
    assert ask(5) and not ask(64)


@pytest.mark.parametrize("seed", range(5))
def test_places_are_found_by_any_ordinal_of_theirs(seed: int) -> None:
    rng = random.Random(seed)
    firsts = sorted(rng.sample(range(1000), 20))
    places = [(first, 100 * number, number) for number, first in enumerate(firsts)]
    shuffled = places[:]
    rng.shuffle(shuffled)
    found = offsets(*shuffled)
    found.sort()
    assert found.to_bytes() == offsets(*places).to_bytes() == found.copy().to_bytes()
    assert ExtentOffsets.from_bytes(found.to_bytes(), 20).firsts == found.firsts
    for number, (first, _, _) in enumerate(places):
        following = firsts[number + 1] if number + 1 < 20 else 2000
        assert found.find(first) == found.find(following - 1) == number
