"""Messages with keys as a producer sends them: single, in batches, encrypted, with and without a size."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import strategies as st

from magnetar.protocol.compression import CompressionType, compress
from magnetar.protocol.entries import (
    EncryptionKey,
    EntryMetadata,
    SingleMessageMetadata,
    build_entry,
    join_batch,
)
from magnetar.protocol.frames import with_checksum

BASE = EntryMetadata("p", 0, 1)

ENCRYPTED = (EncryptionKey("k", b"v"),)


@dataclass(frozen=True)
class Message:
    """One message of an application; ``size_said`` matters only outside a batch."""

    key: str | None
    value: bytes
    size_said: bool = True


keys = st.one_of(st.none(), st.sampled_from(["a", "b", "c", "d", "é"]))

values = st.one_of(st.just(b""), st.binary(min_size=1, max_size=12))

messages = st.builds(Message, keys, values, st.booleans())

entries = st.one_of(
    messages,
    st.tuples(st.lists(messages, min_size=1, max_size=5), st.sampled_from(CompressionType), st.booleans()),
)


def single(message: Message) -> bytes:
    entry = build_entry(replace(BASE, partition_key=message.key, uncompressed_size=len(message.value)), message.value)
    if message.value or not message.size_said:
        return entry
    # absent and 0 are two things on the wire, and EntryMetadata knows no difference
    size = int.from_bytes(entry[6:10], "big")
    return with_checksum((size + 2).to_bytes(4, "big") + entry[10 : 10 + size] + b"\x48\x00" + entry[10 + size :])


def batch(inside: list[Message], kind: CompressionType, *, encrypted: bool = False, key: str | None = None) -> bytes:
    plain = join_batch((SingleMessageMetadata(partition_key=one.key), one.value) for one in inside)
    metadata = replace(
        BASE, num_messages_in_batch=len(inside), compression=kind, uncompressed_size=len(plain), partition_key=key,
        encryption_keys=ENCRYPTED if encrypted else (),
    )  # fmt: skip
    return build_entry(metadata, compress(kind, plain))
