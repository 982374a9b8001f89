"""Bulk reading and writing of entries gives what the message-by-message codec gives."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.model.errors import MagnetarError, NotAvailableError, ProtocolError
from magnetar.protocol.compression import CompressionType, compress, decompress
from magnetar.protocol.entries import (
    EncryptionKey,
    EntryMetadata,
    SingleMessageMetadata,
    build_entry,
    join_batch,
    metadata_of,
    payload_of,
    split_batch,
)
from magnetar.protocol.message_keys import key_text
from tests.support.batch_writer import BatchWriter
from tests.support.columns import Columns

texts = st.text(max_size=6)
pairs = st.lists(st.tuples(texts, texts), max_size=2).map(tuple)
messages = st.lists(
    st.tuples(
        st.none() | st.binary(max_size=20),
        st.none() | st.binary(max_size=6),
        st.integers(0, 1 << 50),
        pairs,
    ),
    min_size=1,
    max_size=12,
)


@given(messages, st.sampled_from(CompressionType), st.integers(1, 5), st.integers(1, 60))
def test_what_is_packed_is_what_both_readers_find(
    rows: list[tuple[bytes | None, bytes | None, int, tuple[tuple[str, str], ...]]],
    kind: CompressionType,
    most: int,
    size: int,
) -> None:
    values, keys, times, properties = (list(column) for column in zip(*rows, strict=True))
    ids = [7 + 3 * index for index in range(len(rows))]
    writer = BatchWriter("p", compression=kind, max_messages=most, max_bytes=size)
    batches = list(writer.pack(123, values, ids, keys, times, properties))
    assert sum(batch.messages for batch in batches) == len(rows)
    assert all(batch.messages <= most for batch in batches)
    columns, single = Columns(), []
    for number, batch in enumerate(batches):
        columns.add(9, number, batch.entry)
        metadata = metadata_of(batch.entry)
        plain = decompress(metadata.compression, payload_of(batch.entry), metadata.uncompressed_size, 1 << 20)
        assert metadata.num_messages_in_batch == batch.messages
        single += split_batch(plain, batch.messages)
        assert (metadata.sequence_id, metadata.highest_sequence_id) == batch[2:]
    assert columns.values == values
    assert columns.keys == keys
    assert columns.event_times == times
    assert columns.sequence_ids == ids
    assert columns.properties == properties
    assert [one.sequence_id for one, _ in single] == ids
    assert [one.properties for one, _ in single] == properties
    assert [(None if one.null_value else payload) for one, payload in single] == values
    assert [None if key is None else key_text(key) for key in keys] == [
        None if one.partition_key is None else (one.partition_key, one.partition_key_b64_encoded) for one, _ in single
    ]
    quick = Columns(details=False)
    for number, batch in enumerate(batches):
        quick.add(9, number, batch.entry)
    assert (quick.values, quick.indexes) == (columns.values, columns.indexes)


def test_a_batch_is_cut_by_bytes_before_it_grows_too_large() -> None:
    writer = BatchWriter("p", max_messages=100, max_bytes=100)
    sizes = [batch.messages for batch in writer.pack(1, [b"x" * 40] * 5 + [b"y" * 500], range(6))]
    assert sizes == [2, 2, 1, 1]


def test_the_first_key_stands_for_the_batch() -> None:
    """The metadata of a batch carry the key of its first message (rule 3.5.2)."""
    (batch,) = BatchWriter("p").pack(1, [b"a", b"b"], [0, 1], [b"k1", b"k2"])
    assert metadata_of(batch.entry).partition_key == "k1"


def test_a_single_message_and_its_absences() -> None:
    columns = Columns()
    columns.add(1, 2, build_entry(EntryMetadata("p", 5, 99), b"plain"))
    columns.add(1, 3, build_entry(EntryMetadata("q", 6, 99, partition_key="YQ==", partition_key_b64_encoded=True), b""))
    columns.add(1, 4, build_entry(EntryMetadata("q", 7, 99, null_value=True, event_time=4), b""))
    assert columns.values == [b"plain", b"", None]
    assert columns.keys == [None, b"a", None]
    assert columns.event_times == [0, 0, 4]
    assert [(row.entry, row.messages, row.batch_size, row.producer_name) for row in columns.entries] == [
        (2, 1, 0, "p"),
        (3, 1, 0, "q"),
        (4, 1, 0, "q"),
    ]


def batch_of(*singles: tuple[SingleMessageMetadata, bytes]) -> bytes:
    return build_entry(EntryMetadata("p", 0, 1, num_messages_in_batch=len(singles)), join_batch(singles))


@pytest.mark.parametrize("details", [True, False])
def test_borders_and_compacted_messages_inside_a_batch(details: bool) -> None:
    entry = batch_of(
        (SingleMessageMetadata(), b"0"),
        (SingleMessageMetadata(compacted_out=True), b""),
        (SingleMessageMetadata(), b"2"),
        (SingleMessageMetadata(), b"3"),
    )
    for first, stop, wanted in ((0, 9, [0, 2, 3]), (1, 9, [2, 3]), (0, 3, [0, 2]), (3, 4, [3]), (2, 2, [])):
        columns = Columns(details=details)
        assert columns.add(1, 1, entry, first, stop) == len(wanted)
        assert columns.indexes == wanted
        assert columns.values == [b"%d" % index for index in wanted]


def test_what_cannot_be_read_on_its_own_is_named() -> None:
    columns = Columns()
    assert columns.add(1, 0, build_entry(EntryMetadata("p", 0, 1, marker_type=20), b"")) == 0
    chunk = build_entry(EntryMetadata("p", 0, 1, uuid="u", num_chunks_from_msg=3, chunk_id=0), b"x")
    with pytest.raises(NotAvailableError, match="entry 1:1 is a chunk"):
        columns.add(1, 1, chunk)
    secret = build_entry(EntryMetadata("p", 0, 1, encryption_keys=(EncryptionKey("k", b"v"),)), b"x")
    with pytest.raises(NotAvailableError, match="entry 1:2 is encrypted"):
        columns.add(1, 2, secret)


@given(st.binary(max_size=40), st.integers(1, 4))
def test_a_damaged_batch_is_a_protocol_error(payload: bytes, count: int) -> None:
    entry = build_entry(EntryMetadata("p", 0, 1, num_messages_in_batch=count), payload)
    for columns in (Columns(), Columns(details=False)):
        try:
            columns.add(1, 1, entry)
        except ProtocolError:
            assert len(columns.values) < count
        else:
            assert split_batch(payload, count)


@given(st.binary(max_size=60))
def test_any_bytes_are_an_entry_or_an_error(data: bytes) -> None:
    try:
        Columns().add(1, 1, data)
    except MagnetarError:
        pass


def test_uncompressed_sizes_are_not_believed() -> None:
    packed = compress(CompressionType.ZLIB, b"x" * 100)
    entry = build_entry(EntryMetadata("p", 0, 1, compression=CompressionType.ZLIB, uncompressed_size=10), packed)
    with pytest.raises(MagnetarError, match="does not have the 10 bytes"):
        Columns().add(1, 1, entry)
