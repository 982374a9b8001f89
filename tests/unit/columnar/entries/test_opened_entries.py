"""What is opened before it becomes columns, encrypted entries and chunks, becomes the columns it would have become."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.columnar.arrow_decoder import METADATA, ArrowDecoder
from magnetar.columnar.entries.block import EntryBytes, block_of
from magnetar.columnar.entries.metadata import scan_metadata
from magnetar.columnar.single_entries.encryption import Decryptor, Encryptor
from magnetar.columnar.single_entries.opener import EntryOpener
from magnetar.columnar.values import Binary, ValueDecoder
from magnetar.jobs.reader.opaque_entries import CHUNK, readable_entry
from magnetar.model.errors import MagnetarError
from magnetar.protocol.compression import CompressionType, DamagedPayloadError
from magnetar.protocol.entries import EntryMetadata, metadata_of
from magnetar.protocol.frames import with_checksum
from magnetar.protocol.generated import pulsar_pb2 as pb
from tests.support.chunked_messages import chunks
from tests.support.encrypted_entries import pair

TOPIC = "persistent://public/default/t"
SEAL, UNSEAL = Encryptor({"k": pair()[1]}), Decryptor({"k": pair()[0]})
"""A private key is checked when it is loaded, which takes longer than everything else here: it is loaded once."""
texts = st.binary(max_size=4)


def field(number: int, data: bytes) -> bytes:
    """A field of bytes, of less than 128."""
    tag = number << 3 | 2
    return (bytes([tag]) if tag < 128 else bytes([tag & 127 | 128, tag >> 7])) + bytes([len(data)]) + data


def entry(payload: bytes, more: bytes = b"", **fields: Any) -> bytes:
    """An entry as any client may send it; ``more`` are fields as they are on the wire."""
    raw = pb.MessageMetadata(producer_name="p", sequence_id=1, publish_time=2, **fields).SerializeToString() + more
    return with_checksum(len(raw).to_bytes(4, "big") + raw, payload)


def sealed(payload: bytes, more: bytes = b"", **fields: Any) -> bytes:
    metadata, secret = SEAL.encrypt(EntryMetadata("p", 1, 2), payload)
    (key,) = metadata.encryption_keys
    keys = [pb.EncryptionKeys(key=key.key, value=key.value)]
    return entry(secret, more, encryption_keys=keys, encryption_param=metadata.encryption_param, **fields)


def columns(*stored: bytes) -> dict[str, Any]:
    """All columns but the id, read as a Spark task reads."""
    opener = EntryOpener(TOPIC, 1_000, UNSEAL)
    decoder = ArrowDecoder(TOPIC, ValueDecoder(Binary()), tuple(METADATA))
    found: list[Any] = []
    for number, data in enumerate(stored):
        apart, _ = scan_metadata(block_of([EntryBytes(1, number, data)]))
        whole = opener.open(1, number, data) if apart[0] else None
        if whole is not None or not apart[0]:
            found += decoder.add(1, 0, data if whole is None else whole.data)
    (batch,) = [*found, *decoder.flush()]
    batch.validate(full=True)
    found_columns: dict[str, Any] = batch.to_pydict()
    return found_columns


@given(
    st.lists(st.tuples(st.sampled_from([1, 5, 6, 18]), texts), max_size=4),
    st.lists(st.tuples(texts, texts), max_size=2),
)
def test_an_encrypted_entry_has_the_columns_of_a_plain_one(
    spans: list[tuple[int, bytes]], pairs: list[tuple[bytes, bytes]]
) -> None:
    """Also if its texts are no UTF-8, as C++ clients can send them."""
    more = b"".join(field(number, data) for number, data in spans)
    more += b"".join(field(4, field(1, name) + field(2, text)) for name, text in pairs)
    assert columns(sealed(b"value", more)) == columns(entry(b"value", more))


@pytest.mark.parametrize("make", [entry, sealed], ids=["plain", "encrypted"])
def test_only_a_chunk_that_says_of_which_message_is_one(make: Callable[..., bytes]) -> None:
    """Everybody may write an entry that says otherwise, and it kept all readers of columns from the topic."""
    strange = make(b"value", num_chunks_from_msg=2, chunk_id=0)
    assert columns(strange) == columns(entry(b"value"))
    readable = readable_entry(strange)
    assert readable is not None
    assert CHUNK not in dict(metadata_of(readable).properties)
    # What says so and has no number is dropped, as a chunk without its beginning is.
    assert columns(make(b"gone", num_chunks_from_msg=2, uuid="u"), entry(b"value"))["value"] == [b"value"]
    assert columns(make(b"gone", num_chunks_from_msg=2, uuid="u", chunk_id=-1), entry(b"value"))["value"] == [b"value"]


def test_a_key_of_a_message_in_chunks_keeps_its_bytes() -> None:
    parts = [
        entry(piece, field(6, b"\xff\xfe"), uuid="u", num_chunks_from_msg=2, chunk_id=number, total_chunk_msg_size=2)
        for number, piece in enumerate((b"a", b"b"))
    ]
    found = columns(*parts)
    assert (found["value"], found["__key"]) == ([b"ab"], [b"\xff\xfe"])


@pytest.mark.parametrize("kind", [CompressionType.LZ4, CompressionType.ZSTD, CompressionType.ZLIB])
def test_a_payload_that_cannot_be_unpacked_is_named(kind: CompressionType) -> None:
    packed: dict[str, Any] = {"compression": int(kind), "uncompressed_size": 100}
    with pytest.raises(DamagedPayloadError, match=rf"{TOPIC}: entry 1:0 is damaged: {kind.name}"):
        columns(entry(b"no", **packed))
    with pytest.raises(DamagedPayloadError, match=r"begins at 1:0 is damaged"):
        columns(*(one[:-1] + b"\0" for one in chunks("u", bytes(1000), 2, kind=kind)))


def test_damage_names_the_topic() -> None:
    with pytest.raises(MagnetarError, match=rf"{TOPIC}: entry 1:0 is damaged: its metadata"):
        columns(b"\x0e\x01" + bytes(20))
