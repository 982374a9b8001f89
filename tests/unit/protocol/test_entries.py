"""Entries, batches and compression: round trips, what a broker looks at, and damage (rules 1.1.9, 3.7, 5.6.1)."""

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import Any

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from magnetar.model.errors import ProtocolError
from magnetar.protocol import entries as e
from magnetar.protocol.commands import ValidationError
from magnetar.protocol.compression import CompressionType, DamagedPayloadError, compress, decompress
from magnetar.protocol.frames import checksum_holds, with_checksum
from magnetar.protocol.generated import pulsar_pb2 as pb
from magnetar.protocol.sticky_key import sticky_key
from tests.support.command_strategies import instances

MAX = 5 * 1024 * 1024
PACKED = [kind for kind in CompressionType if kind is not CompressionType.NONE]


@settings(max_examples=150, deadline=None)
@given(instances(e.EntryMetadata), st.binary(max_size=100))
def test_entry_round_trip(metadata: e.EntryMetadata, payload: bytes) -> None:
    entry = e.build_entry(metadata, payload)
    assert checksum_holds(entry)
    assert e.metadata_of(entry) == metadata
    assert e.payload_of(entry) == payload
    assert e.publish_time(entry) == metadata.publish_time


def test_a_batch_of_one_is_not_a_single_message() -> None:
    """The presence of num_messages_in_batch makes a batch, not its value (rule 1.1.9)."""
    assert e.metadata_of(e.build_entry(e.EntryMetadata("p", 0, 1), b"")).num_messages_in_batch is None
    assert (
        e.metadata_of(e.build_entry(e.EntryMetadata("p", 0, 1, num_messages_in_batch=1), b"")).num_messages_in_batch
        == 1
    )


@pytest.mark.parametrize(
    ("metadata", "key"),
    [
        (e.EntryMetadata("p", 7, 1), b"p-7"),
        (e.EntryMetadata("p", 7, 1, partition_key="k"), b"k"),
        (e.EntryMetadata("p", 7, 1, partition_key="AAH/", partition_key_b64_encoded=True), b"\x00\x01\xff"),
        (e.EntryMetadata("p", 7, 1, partition_key="!", partition_key_b64_encoded=True), b"!"),
        (e.EntryMetadata("p", 7, 1, partition_key="k", ordering_key=b"o"), b"o"),
        (e.EntryMetadata("p", 7, 1, partition_key="k", ordering_key=b""), b""),
    ],
)
def test_sticky_key(metadata: e.EntryMetadata, key: bytes) -> None:
    """The key of an entry is its ordering key, its key, its producer and sequence id, or NONE_KEY (rule 5.6.1)."""
    assert sticky_key(e.build_entry(metadata, b"x")) == key


@settings(deadline=None)
@given(
    st.one_of(
        instances(e.EntryMetadata),
        st.builds(
            e.EntryMetadata, producer_name=st.text(max_size=140), sequence_id=st.integers(0, 1 << 40),
            publish_time=st.integers(1, 1 << 42), partition_key=st.text(max_size=130),
            num_messages_in_batch=st.none() | st.integers(1, 1 << 30), event_time=st.integers(0, 1 << 40),
            partition_key_b64_encoded=st.sampled_from([False, False, True]),
        ),
    ),
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 255)), max_size=2),
    st.integers(0, 70),
)  # fmt: skip
def test_a_sticky_key_read_by_hand_is_what_protobuf_finds(
    metadata: e.EntryMetadata, damage: list[tuple[int, int]], left: int
) -> None:
    """Whatever is damaged or missing: an entry with one key for one broker has it for all of them (rule 5.6.1)."""
    entry = bytearray(e.build_entry(metadata, b"payload"))
    for at, value in damage:
        if at < len(entry):
            entry[at] = value
    for data in (bytes(entry), bytes(entry[:left])):
        assert sticky_key(data) == e.sticky_key_by_protobuf(data)


def test_sticky_key_of_an_unreadable_entry() -> None:
    assert sticky_key(with_checksum(b"\x00\x00\x00\x02\xff\xff")) == b"NONE_KEY"
    assert sticky_key(b"") == b"NONE_KEY"


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(instances(e.SingleMessageMetadata), st.binary(max_size=50)), max_size=5))
def test_batch_round_trip(messages: list[tuple[e.SingleMessageMetadata, bytes]]) -> None:
    """The messages of a batch keep their own metadata (rule 3.5.3)."""
    assert e.split_batch(e.join_batch(messages), len(messages)) == messages


def test_batch_as_protobuf_sees_it() -> None:
    batch = e.join_batch([(e.SingleMessageMetadata(partition_key="k"), b"payload")])
    size = int.from_bytes(batch[:4], "big")
    raw = pb.SingleMessageMetadata.FromString(batch[4 : 4 + size])
    assert (raw.partition_key, raw.payload_size, batch[4 + size :]) == ("k", 7, b"payload")


@settings(max_examples=150, deadline=None)
@given(st.one_of(st.binary(max_size=60), st.binary(max_size=30).map(lambda tail: b"\x00\x00\x00\x02\x18\x03" + tail)))
def test_any_bytes_as_batch_or_entry_give_a_value_or_protocol_error(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        e.split_batch(data, 100)
    for entry in (data, with_checksum(data)):
        for look in (e.metadata_of, e.payload_of, e.publish_time):
            try:
                look(entry)
            except ProtocolError:
                pass
        assert isinstance(sticky_key(entry), bytes)


@pytest.mark.parametrize("kind", list(CompressionType))
@settings(max_examples=30, deadline=None)
@given(st.one_of(st.binary(max_size=300), st.binary(max_size=20).map(lambda part: part * 200)))
def test_compression_round_trip(kind: CompressionType, data: bytes) -> None:
    assert decompress(kind, compress(kind, data), len(data), MAX) == data


@pytest.mark.parametrize("kind", list(CompressionType))
def test_empty_payload(kind: CompressionType) -> None:
    """An empty payload survives every codec, also from a writer that sends nothing at all (rule 3.7.6)."""
    assert decompress(kind, compress(kind, b""), 0, MAX) == b""


def test_exact_encodings() -> None:
    """The encodings are exactly those of the codecs, read back by other means than the ones under test (rules 3.7.2 to
    3.7.5)."""
    data = b"magnetar " * 50
    assert zlib.decompress(compress(CompressionType.ZLIB, data)) == data
    lz4 = compress(CompressionType.LZ4, data)
    assert bytes(cramjam.lz4.decompress_block(lz4, output_len=len(data))) == data
    assert lz4[1:10] == b"magnetar "  # a token, then literals: no length before, no frame magic
    zstd = compress(CompressionType.ZSTD, data)
    assert zstd[:4] == bytes.fromhex("28b52ffd")
    snappy = compress(CompressionType.SNAPPY, data)
    assert snappy[:2] == bytes([450 & 127 | 128, 450 >> 7])


@pytest.mark.parametrize("kind", PACKED)
def test_nothing_larger_than_promised_is_unpacked(kind: CompressionType) -> None:
    bomb = compress(kind, bytes(50_000_000))
    with pytest.raises(DamagedPayloadError) as lie:
        decompress(kind, bomb, 1000, MAX)
    assert lie.value.reason is ValidationError.DecompressionError
    with pytest.raises(DamagedPayloadError) as honest:
        decompress(kind, bomb, 50_000_000, MAX)
    assert honest.value.reason is ValidationError.UncompressedSizeCorruption


@pytest.mark.parametrize("kind", PACKED)
@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=80), st.integers(0, 200))
def test_any_bytes_unpack_or_are_damaged(kind: CompressionType, data: bytes, size: int) -> None:
    try:
        assert len(decompress(kind, data, size, MAX)) == size
    except DamagedPayloadError as error:
        assert error.reason is ValidationError.DecompressionError


def test_text_that_is_not_utf8() -> None:
    """The parser hands out bytes then; typed metadata refuses it, the sticky key still is the key."""
    entry = e.build_entry(e.EntryMetadata("p", 7, 1, partition_key="kk"), b"")
    damaged = with_checksum(entry[6:].replace(b"kk", b"\xff\xfe"))
    assert sticky_key(damaged) == b"\xff\xfe"
    with pytest.raises(ProtocolError):
        e.metadata_of(damaged)


@pytest.mark.parametrize("before", [0, 300, 70_000, 140_000])
def test_may_be_chunk_is_false_only_for_what_is_no_chunk(before: int) -> None:
    """The metadata alone decide, however long, and whatever the payload holds; also of bytes that are no entry."""
    base = e.EntryMetadata("p", 0, 1, properties=(("k", "v" * before),))
    chunk = e.build_entry(replace(base, uuid="u", chunk_id=0, num_chunks_from_msg=2, total_chunk_msg_size=9), b"x")
    assert e.may_be_chunk(chunk)
    assert not e.may_be_chunk(e.build_entry(base, chunk))
    for size in range(10):
        assert not e.may_be_chunk(chunk[:size])


@settings(max_examples=120, deadline=None)
@given(
    st.lists(
        st.tuples(
            instances(e.SingleMessageMetadata),
            st.sampled_from([0, 1, 126, 127, 128, 129, 300, 16_383, 16_384, 20_000]),
            st.booleans(),
        ),
        max_size=6,
    )
)
def test_a_batch_is_cut_as_it_is_split_without_what_compaction_took_out(
    messages: list[tuple[e.SingleMessageMetadata, int, bool]],
) -> None:
    whole = [(replace(metadata, compacted_out=out), bytes([size % 251]) * size) for metadata, size, out in messages]
    payload = e.join_batch(whole)
    found = e.cut_batch(payload, len(whole))
    walked = list(e.walk_batch(payload, len(whole)))
    assert found == [
        (index, payload[at + 4 : body], payload[body:stop])
        for index, (raw, at, body, stop) in enumerate(walked)
        if not raw.compacted_out
    ]
    for index, metadata, own in found:
        assert own == whole[index][1]
        assert e.single_metadata_of(metadata).payload_size == len(own)
    if whole:
        for short in (payload[:-1], payload[: len(payload) // 2]):
            with pytest.raises(ProtocolError):
                e.cut_batch(short, len(whole))
            with pytest.raises(ProtocolError):
                list(e.walk_batch(short, len(whole)))
        for at in (0, 1):  # a size that reaches beyond the end
            with pytest.raises(ProtocolError, match="message 0 is longer than its batch"):
                next(e.walk_batch(payload[:at] + b"\x7f" + payload[at + 1 :], len(whole)))
        with pytest.raises(ProtocolError):
            e.cut_batch(payload, len(whole) + 1)


@pytest.mark.parametrize(
    "size",
    [0, 1, 63, 64, 127, 128, 8191, 8192, 16_383, 16_384, (1 << 20) - 1, 1 << 20, (1 << 20) + 127, (1 << 20) + 128],
)
@pytest.mark.parametrize("more", [{}, {"sequence_id": 5}, {"event_time": 64}, {"event_time": 64 << 7}])
def test_a_size_is_read_to_its_end_however_it_ends(size: int, more: dict[str, int]) -> None:
    """Of 8,192 bytes and of one MiB the last byte of the size is 0x40, as the first of a sequence id would be."""
    metadata = e.SingleMessageMetadata(**more)  # type: ignore[arg-type]
    payload = e.join_batch([(metadata, bytes(size)), (metadata, b"x")])
    assert [own for _, _, own in e.cut_batch(payload, 2)] == [bytes(size), b"x"]


@pytest.mark.parametrize("before", ["4003", "4002", "2818", "3001", "4003280130012a00", "0a060a0161120162120163"])
def test_a_size_is_found_whatever_stands_before_and_after_it(before: str) -> None:
    """Clients may write the fields of a message in any order: what is like a size behind it is none."""
    metadata = bytes.fromhex(before) + b"\x18\x05" + bytes.fromhex("2818300128183001")
    payload = len(metadata).to_bytes(4, "big") + metadata + b"hello"
    assert next(iter(e.walk_batch(payload, 1)))[2:] == (4 + len(metadata), len(payload))
    assert e.cut_batch(payload, 1) == [(0, metadata, b"hello")]


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60), st.integers(1, 4))
def test_any_bytes_that_can_be_split_are_cut_alike(data: bytes, count: int) -> None:
    try:
        walked = list(e.walk_batch(data, count))
    except ProtocolError:
        return
    assert e.cut_batch(data, count) == [
        (index, data[at + 4 : body], data[body:stop])
        for index, (raw, at, body, stop) in enumerate(walked)
        if not raw.compacted_out
    ]


@pytest.mark.parametrize(
    ("metadata", "messages", "size"),
    [
        ({}, 1, None),
        ({"num_messages_in_batch": 0}, 1, None),
        ({"num_messages_in_batch": 1}, 1, None),
        ({"num_messages_in_batch": 7}, 7, None),
        ({"marker_type": 0}, 0, None),
        ({"marker_type": 20, "num_messages_in_batch": 3}, 0, None),
        ({"chunk_id": 0, "num_chunks_from_msg": 3, "total_chunk_msg_size": 9999}, 1, 9999),
        ({"chunk_id": 0, "num_chunks_from_msg": 3, "total_chunk_msg_size": 2}, 1, None),
        ({"chunk_id": 1, "num_chunks_from_msg": 3, "total_chunk_msg_size": 9999}, 0, 0),
        ({"chunk_id": 2, "num_chunks_from_msg": 3, "total_chunk_msg_size": 9999}, 0, 0),
        ({"chunk_id": 1, "num_chunks_from_msg": 1, "total_chunk_msg_size": 9999}, 1, None),
        ({"num_chunks_from_msg": 3, "total_chunk_msg_size": 9999}, 1, None),
    ],
)
def test_what_a_limit_knows_of_an_entry(metadata: dict[str, int], messages: int, size: int | None) -> None:
    """Markers and later chunks are no message; the first chunk stands for all bytes of its message, or its own."""
    entry = e.build_entry(e.EntryMetadata("p", 0, 77, **metadata), b"x" * 50)  # type: ignore[arg-type]
    assert e.measure(entry) == (messages, 77, len(entry) if size is None else size)


@pytest.mark.parametrize(
    ("metadata", "found"),
    [
        ({}, None),
        ({"uuid": "u"}, None),
        ({"uuid": "u", "num_chunks_from_msg": 1, "chunk_id": 0}, None),
        ({"num_chunks_from_msg": 3, "chunk_id": 0}, None),
        ({"uuid": "u", "num_chunks_from_msg": 2, "chunk_id": 0}, ("u", False)),
        ({"uuid": "u", "num_chunks_from_msg": 2, "chunk_id": 1}, ("u", True)),
        ({"uuid": "u", "num_chunks_from_msg": 300, "chunk_id": 298}, ("u", False)),
        ({"uuid": "u", "num_chunks_from_msg": 300, "chunk_id": 299}, ("u", True)),
        ({"uuid": "u", "num_chunks_from_msg": 2, "chunk_id": 9}, ("u", True)),
    ],
)
@pytest.mark.parametrize("before", [0, 300, 70_000])
def test_which_message_a_chunk_belongs_to(
    metadata: dict[str, Any], found: tuple[str, bool] | None, before: int
) -> None:
    entry = e.build_entry(e.EntryMetadata("p" * before, 0, 77, **metadata), b"x")
    assert e.chunk_of(entry) == found
    assert e.may_be_chunk(entry) is ("uuid" in metadata)
    broken = entry[:10] + b"\xff" + entry[11:]
    assert e.chunk_of(broken) is None, "never fails"


@pytest.mark.parametrize("before", [0, 300, 70_000])
def test_when_an_entry_wants_to_be_delivered(before: int) -> None:
    """At once if it does not say, says a time before 1970, or cannot be read (rule 7.1)."""
    for at in (None, -5, 0, 1, 1 << 40, (1 << 63) - 1):
        entry = e.build_entry(e.EntryMetadata("p" * before, 0, 77, deliver_at_time=at), b"x")
        assert e.deliver_at(entry) == max(at or 0, 0)
        assert e.deliver_at(entry[:10] + b"\xff" + entry[11:]) == 0
    plain = e.build_entry(e.EntryMetadata("p" * before, 0, 77), e.DELIVER_AT * 5)
    assert e.deliver_at(plain) == 0, "what stands in the payload is no field"


def test_whether_a_key_is_needed_to_read_an_entry() -> None:
    keys = (e.EncryptionKey("k", b"v"),)
    assert e.is_encrypted(e.build_entry(e.EntryMetadata("p", 0, 1, encryption_keys=keys), b"x"))
    assert not e.is_encrypted(e.build_entry(e.EntryMetadata("p", 0, 1), b"x"))
    for broken in (b"", b"\x0e\x01" + bytes(7), b"\x0e\x01" + bytes(4) + b"\x00\x00\x00\x09x"):
        with pytest.raises(ProtocolError):
            e.is_encrypted(broken)


@pytest.mark.parametrize(
    ("room", "claimed", "counted"),
    [(60, 10, 10), (60, 11, 10), (65, 11, 10), (66, 11, 11), (12, 3, 2), (12, 2, 2), (11, 2, 1), (5, 2, 1)],
)
def test_a_batch_counts_no_more_messages_than_its_payload_has_room_for(room: int, claimed: int, counted: int) -> None:
    """Each takes six bytes at least; consumers pay permits for what is counted."""
    entry = e.build_entry(e.EntryMetadata("p", 0, 1, num_messages_in_batch=claimed), bytes(room))
    assert e.messages_in(entry, claimed) == counted


@pytest.mark.parametrize("packed", ["compression", "encryption"])
def test_a_batch_whose_payload_was_not_unpacked_counts_a_million_messages_at_most(packed: str) -> None:
    options: dict[str, Any] = {"compression": CompressionType.ZSTD}
    if packed == "encryption":
        options = {"encryption_keys": (e.EncryptionKey("k", b"v"),)}
    for claimed in (5, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, (1 << 31) - 1):
        entry = e.build_entry(e.EntryMetadata("p", 0, 1, num_messages_in_batch=claimed, **options), b"xyz")
        assert e.messages_in(entry, claimed) == min(claimed, 1 << 20)


def test_a_field_is_found_wherever_it_stands() -> None:
    """Protobuf writes fields by their numbers, and nothing says that a client has to."""
    rest = pb.MessageMetadata(producer_name="p", sequence_id=0, publish_time=1, num_chunks_from_msg=2, chunk_id=0)
    for field in ({"uuid": "u"}, {"deliver_at_time": 5000}):
        metadata = pb.MessageMetadata(**field).SerializePartialToString() + rest.SerializeToString()
        entry = with_checksum(len(metadata).to_bytes(4, "big") + metadata + b"x")
        chunk = ("u", False) if "uuid" in field else None
        assert (e.chunk_of(entry), e.may_be_chunk(entry)) == (chunk, chunk is not None)
        assert e.deliver_at(entry) == field.get("deliver_at_time", 0)
