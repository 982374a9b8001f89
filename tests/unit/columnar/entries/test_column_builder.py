"""Messages in columns are what the naive model reads, whatever is in an entry and whatever is damaged."""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.columnar.entries import rows
from magnetar.columnar.entries.block import ALL, EntryBlock, EntryBytes, block_of
from magnetar.columnar.entries.column_builder import ColumnBuilder
from magnetar.model.errors import MagnetarError, NotAvailableError, ProtocolError
from magnetar.model.ids import signed
from magnetar.protocol.compression import CompressionType, DamagedPayloadError, compress
from magnetar.protocol.entries import EncryptionKey, EntryMetadata, SingleMessageMetadata, build_entry, join_batch
from tests.support.columns import Columns

texts = st.text(max_size=8)
pairs = st.lists(st.tuples(texts, texts), max_size=3).map(tuple)
base64_keys = st.binary(max_size=9).map(lambda key: base64.b64encode(key).decode())
strange_keys = st.text(alphabet="AZaz09+/=-\n", max_size=9)
numbers = st.integers(0, (1 << 63) - 1)
keys = st.none() | texts | base64_keys | strange_keys
singles = st.tuples(
    st.builds(
        SingleMessageMetadata,
        properties=pairs,
        partition_key=keys,
        compacted_out=st.booleans(),
        event_time=numbers,
        partition_key_b64_encoded=st.booleans(),
        ordering_key=st.none() | st.binary(max_size=6),
        sequence_id=st.none() | numbers,
        null_value=st.booleans(),
        null_partition_key=st.booleans(),
    ),
    st.binary(max_size=40),
)
metadata = st.builds(
    EntryMetadata,
    producer_name=st.sampled_from(["p", "another", "", "ü"]),
    sequence_id=numbers,
    publish_time=numbers,
    properties=pairs,
    replicated_from=st.none() | texts,
    partition_key=keys,
    replicate_to=st.lists(texts, max_size=2).map(tuple),
    event_time=numbers,
    schema_version=st.none() | st.binary(max_size=9),
    partition_key_b64_encoded=st.booleans(),
    ordering_key=st.none() | st.binary(max_size=6),
    deliver_at_time=st.none() | numbers,
    marker_type=st.sampled_from([None, None, None, None, None, 20]),
    highest_sequence_id=st.none() | numbers,
    null_value=st.booleans(),
    compacted_batch_indexes=st.lists(st.integers(0, 9), max_size=3).map(tuple),
)


@st.composite
def entries(draw: st.DrawFn) -> bytes:
    """Any entry that can be read on its own."""
    kind, head = draw(st.sampled_from(CompressionType)), draw(metadata)
    payload, count = draw(st.binary(max_size=60)), None
    if draw(st.booleans()):
        batch = draw(st.lists(singles, max_size=6))
        payload, count = join_batch(batch), len(batch)
    head = dataclasses.replace(head, compression=kind, uncompressed_size=len(payload), num_messages_in_batch=count)
    return build_entry(head, compress(kind, payload))


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """Outside of what is timed."""
    entry = build_entry(
        EntryMetadata("p", 0, 1, num_messages_in_batch=1), join_batch([(SingleMessageMetadata(), b"x")])
    )
    check(filled([block_of(stored([entry]))]), model_of([entry]))


def filled(blocks: Sequence[EntryBlock], **options: Any) -> ColumnBuilder:
    messages = ColumnBuilder(**options)
    for block in blocks:
        for _ in messages.add(block):
            raise AssertionError("there is no limit here")
    return messages


def stored(data: Sequence[bytes]) -> list[EntryBytes]:
    return [EntryBytes(7, number, one, 1000 + number) for number, one in enumerate(data)]


def model_of(data: Sequence[bytes], first: int = 0, stop: int = ALL) -> Columns:
    columns = Columns()
    for ledger, entry, one, _ in stored(data):
        columns.add(ledger, entry, one, first, stop)
    return columns


def check_details(found: ColumnBuilder, wanted: Columns) -> None:
    assert found.values().to_pylist() == wanted.values
    assert found.places().tolist() == wanted.indexes
    assert found.keys().to_pylist() == wanted.keys
    assert found.ordering_keys().to_pylist() == wanted.ordering_keys
    assert found.event_times().tolist() == wanted.event_times
    # A damaged one may be the largest there is, from which Python counts on.
    assert found.sequence_ids().tolist() == [signed(number % (1 << 64)) for number in wanted.sequence_ids]
    assert [tuple(one) for one in found.properties().to_pylist()] == wanted.properties
    for column in (found.values(), found.keys(), found.ordering_keys(), found.properties(), found.message_ids(3)):
        column.validate(full=True)


def check(found: ColumnBuilder, wanted: Columns) -> None:
    check_details(found, wanted)
    each = [row for row in wanted.entries for _ in range(row.messages)]
    assert found.ledgers().tolist() == [row.ledger for row in each]
    assert found.entries().tolist() == [row.entry for row in each]
    assert found.publish_times().tolist() == [row.publish_time for row in each]
    assert found.producer_names().to_pylist() == [row.producer_name for row in each]
    assert found.schema_versions().to_pylist() == [row.schema_version for row in each]
    assert found.broker_indexes().to_pylist() == [
        1000 + row.entry - (max(row.batch_size, 1) - 1 - place) for row, place in zip(each, wanted.indexes, strict=True)
    ]
    versions = [version for count, version in found.runs() for _ in range(count)]
    assert versions == [row.schema_version for row in each]


@given(st.lists(entries(), max_size=5), st.booleans(), st.integers(0, 3), st.integers(0, 6) | st.just(ALL))
def test_columns_are_those_of_the_model(data: list[bytes], together: bool, first: int, stop: int) -> None:
    all_of = stored(data)
    blocks = [block_of(all_of, first, stop)] if together else [block_of([one], first, stop) for one in all_of]
    wanted = model_of(data, first, stop)
    check(filled(blocks), wanted)
    quick = filled(blocks, details=False)
    assert (quick.values().to_pylist(), quick.places().tolist()) == (wanted.values, wanted.indexes)


@given(st.lists(entries(), min_size=1, max_size=6), st.integers(1, 5), st.booleans())
def test_limits_cut_between_entries(data: list[bytes], most: int, by_bytes: bool) -> None:
    messages = ColumnBuilder(max_bytes=20 * most) if by_bytes else ColumnBuilder(max_rows=most)
    parts: list[Any] = []

    def take() -> None:
        names, versions = messages.producer_names().to_pylist(), messages.schema_versions().to_pylist()
        ids = list(zip(messages.entries().tolist(), messages.places().tolist(), strict=True))
        values, keys = messages.values().to_pylist(), messages.keys().to_pylist()
        parts.extend(zip(values, keys, names, versions, ids, strict=True))

    for _ in messages.add(block_of(stored(data))):
        # What the kernel has counted towards the limit.
        assert messages._buffers.state[rows.STATE_BYTES] >= 20 * most if by_bytes else len(messages) >= most
        take()
    take()
    wanted = model_of(data)
    each = [row for row in wanted.entries for _ in range(row.messages)]
    ids = list(zip([row.entry for row in each], wanted.indexes, strict=True))
    names, versions = [row.producer_name for row in each], [row.schema_version for row in each]
    assert parts == list(zip(wanted.values, wanted.keys, names, versions, ids, strict=True))


def test_columns_grow_beyond_their_first_size() -> None:
    """Columns grow beyond every first size, in one entry and over many."""
    wide = [(SingleMessageMetadata((("n" * 300, "t" * 500),), "k" * 200, ordering_key=b"o" * 90), b"v" * 99)] * 14_000
    batch = build_entry(EntryMetadata("p" * 5000, 1, 2, num_messages_in_batch=len(wide)), join_batch(wide))
    many = [build_entry(EntryMetadata(f"p{n}", n, 2, schema_version=b"%d" % n), b"x") for n in range(300)]
    found = ColumnBuilder(max_rows=1 << 20, max_bytes=1 << 30)
    assert not list(found.add(block_of(stored([*many, batch]))))
    assert len(found) == 14_300
    assert found.producer_names().to_pylist()[299:301] == ["p299", "p" * 5000]
    assert found.schema_versions().to_pylist()[298:301] == [b"298", b"299", None]
    assert found.values().to_pylist() == [b"x"] * 300 + [b"v" * 99] * 14_000
    assert found.keys().to_pylist() == [None] * 300 + [b"k" * 200] * 14_000
    assert found.ordering_keys().null_count == 300
    assert found.properties()[14_299].as_py() == [("n" * 300, "t" * 500)]
    assert found.properties()[299].as_py() == []
    found.clear()
    assert len(found) == 0
    assert found.values().to_pylist() == []


@given(entries(), st.data())
def test_damaged_bytes_are_an_error_or_what_the_model_reads(entry: bytes, data: st.DataObject) -> None:
    """A row is never wrong, whatever byte is changed or missing."""
    damaged = bytearray(entry)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    damaged = damaged[: data.draw(st.integers(0, len(damaged)))] if data.draw(st.booleans()) else damaged
    # The naive one would begin to count to two thousand million, or make room for them.
    for details in (True, False):
        try:
            found = filled([block_of(stored([bytes(damaged)]))], details=details)
        except (ProtocolError, NotAvailableError, DamagedPayloadError):
            continue
        wanted = model_of([bytes(damaged)])
        assert found.values().to_pylist() == wanted.values
        if details:
            check_details(found, wanted)


@given(st.binary(max_size=60))
def test_any_bytes_are_an_entry_or_an_error(data: bytes) -> None:
    for head in (b"", b"\x0e\x01" + b"crc!" + (len(data) // 2).to_bytes(4, "big")):
        try:
            filled([block_of(stored([head + data]))])
        except MagnetarError:
            pass


@pytest.mark.parametrize("count", [3, 1000, ALL])
def test_a_batch_that_promises_too_much(count: int) -> None:
    """Room is made for what its bytes can hold, not for what it says."""
    batch = join_batch([(SingleMessageMetadata(), b"one"), (SingleMessageMetadata(), b"two")])
    entry = build_entry(EntryMetadata("p", 0, 1, num_messages_in_batch=count), batch)
    with pytest.raises(ProtocolError, match=f"entry 7:0 is damaged: a batch of {count} messages"):
        filled([block_of(stored([entry]))])
    assert filled([block_of(stored([entry]), 1, 2)]).values().to_pylist() == [b"two"]


def test_rows_before_damage_are_whole() -> None:
    good = build_entry(EntryMetadata("p", 0, 1), b"good")
    broken = build_entry(
        EntryMetadata("p", 0, 1, num_messages_in_batch=2), join_batch([(SingleMessageMetadata(), b"half")])
    )
    for bad in (broken, b"\x0e\x01"):
        messages = ColumnBuilder()
        with pytest.raises(ProtocolError, match="entry 7:1 is damaged"):
            list(messages.add(block_of(stored([good, bad, good]))))
        assert messages.values().to_pylist() == [b"good"]


def test_what_cannot_be_read_on_its_own_is_named() -> None:
    chunk = build_entry(EntryMetadata("p", 0, 1, uuid="u", num_chunks_from_msg=3, chunk_id=0), b"x")
    with pytest.raises(NotAvailableError, match="entry 7:0 is a chunk"):
        filled([block_of(stored([chunk]))])
    secret = build_entry(EntryMetadata("p", 0, 1, encryption_keys=(EncryptionKey("k", b"v"),)), b"x")
    with pytest.raises(NotAvailableError, match="entry 7:1 is encrypted"):
        filled([block_of(stored([build_entry(EntryMetadata("p", 0, 1, marker_type=20), b""), secret]))])


def test_an_index_that_the_broker_does_not_give_is_null() -> None:
    entry = build_entry(EntryMetadata("p", 0, 1), b"x")
    assert filled([block_of([EntryBytes(1, 1, entry), EntryBytes(1, 2, entry, 0)])]).broker_indexes().to_pylist() == [
        None,
        0,
    ]


def test_text_that_is_no_utf8_is_replaced_as_python_does() -> None:
    entry = build_entry(EntryMetadata("p", 0, 1, properties=(("name", "texx"),)), b"x").replace(b"texx", b"te\xff\xfe")
    assert filled([block_of(stored([entry]))]).properties().to_pylist() == [[("name", "te\ufffd\ufffd")]]


def test_blocks_share_their_bytes() -> None:
    entry = build_entry(EntryMetadata("p", 0, 1), b"x")
    block = block_of(stored([entry] * 5))
    assert len(block.part(1, 3)) == 2
    assert np.shares_memory(block.part(1, 3).data, block.data)
    assert block.part(1, 3).stored(1) == EntryBytes(7, 2, entry, 1002)


def test_metadata_count_as_far_as_they_become_columns() -> None:
    """Otherwise many properties on small messages would outgrow the 2 GiB of a column."""
    entry = build_entry(EntryMetadata("p", 0, 1, properties=(("name", "x" * 1000),)), b"v")
    block = block_of([EntryBytes(1, number, entry) for number in range(100)])
    for details, stops in ((True, 9), (False, 0)):
        messages = ColumnBuilder(details=details, max_bytes=10_000)
        assert len(list(messages.add(block))) == stops


def test_texts_of_entries_that_are_gone_are_forgotten() -> None:
    """Else producers that take turns would make each batch larger, and slower, than the one before."""
    sent = [build_entry(EntryMetadata(f"p{n % 2}", n, 1, schema_version=b"v%d" % (n % 3)), b"x") for n in range(30)]
    messages, stops = ColumnBuilder(max_rows=40), 0
    names: list[str] = []
    for _ in range(10):
        # A block is never at its end when columns are taken.
        for _ in messages.add(block_of(stored(sent))):
            stops += 1
            names += messages.producer_names().to_pylist()
            assert messages._producers.count <= 70 and messages._schemas.count <= 70
            assert [version for _, version in messages.runs()] == [
                b"v%d" % (n % 3) for n in range(len(names) - 40, len(names))
            ]
    names += messages.producer_names().to_pylist()
    assert stops == 7 and names == [f"p{n % 2}" for n in range(300)]


@pytest.mark.parametrize("marker", [None, 20])
def test_names_and_versions_count_for_each_message(marker: int | None) -> None:
    """Also where nobody asks for them, since they are kept; a column of them holds less than 2 GiB."""
    batch = join_batch([(SingleMessageMetadata(), b"")] * 2)
    head = EntryMetadata("p" * 600, 0, 1, schema_version=b"v" * 400, num_messages_in_batch=2, marker_type=marker)
    entry = build_entry(head, batch)
    block = block_of([EntryBytes(1, number, entry) for number in range(100)])
    for details in (True, False):
        messages = ColumnBuilder(details=details, max_bytes=20_000)
        assert len(list(messages.add(block))) == (9 if marker is None else 4)
