"""What the matrix writes and reads: encodings, each with its messages, in the words that every client's peer knows.

A job for a peer is one line of JSON. ``{"do": "write", "topic", "producer", "schema", "messages", "transaction"}`` is
answered by ``{"ids": [...]}``; ``{"do": "read", "topic", "subscription", "consumer", "schema", "count", "then"}`` by
``{"messages": [...]}``; either by ``{"error": text}``. A message has ``data`` (base64) or ``value``, or ``null``;
``key`` or ``key_bytes`` (base64), ``ordering_key`` (base64), ``properties``, ``event_time``, ``sequence_id``. Those
that were read have their keys as bytes, and ``producer``, ``topic``, ``redeliveries`` and ``id``.
"""

from __future__ import annotations

import base64
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from google.protobuf.api_pb2 import Api
from google.protobuf.type_pb2 import SYNTAX_PROTO3

Fields = dict[str, Any]

CLIENTS: Final = ("ours", "ours-asyncio", "official", "java")
ONLY_JAVA_AND_OURS: Final = frozenset({"ours", "ours-asyncio", "java"})
LARGEST: Final = 1_024_000
"""``maxMessageSize`` of the brokers: what is larger goes in chunks."""
EVENT_TIME: Final = 1_700_000_000_123
ORDER: Final[Fields] = {
    "number": -7, "customer": "ann ü", "price": 19.5, "paid": True, "placed": 1_700_000_000_123,
    "lines": ["pears", ""], "stock": {"a": 1 << 40}, "item": {"sku": "x", "count": 3}, "colour": "BLUE",
}  # fmt: skip
SPARSE: Final[Fields] = {**ORDER, "customer": None, "lines": None, "stock": None, "item": None, "colour": None}

CHUNKS_OF_CPP: Final = "Java's client does not put together the encrypted chunks of the official Python client"
NO_RECORD_OF_CPP: Final = "the official Python client shows a record that is null as one whose fields are None"


def b64(data: bytes) -> str:
    """Return bytes as they stand in jobs and answers."""
    return base64.b64encode(data).decode()


def noise(size: int) -> bytes:
    """Return bytes that no compression makes smaller, the same ones each time."""
    return random.Random(size).randbytes(size)


@dataclass(frozen=True)
class Encoding:
    """One way to write messages, and what of it which client has."""

    name: str
    messages: tuple[Fields, ...]
    producer: Fields = field(default_factory=dict)
    consumer: Fields = field(default_factory=dict)
    schema: str | None = None
    read_as: str | None = None
    """The schema of the consumers, if it is another."""
    writers: frozenset[str] = frozenset(CLIENTS)
    readers: frozenset[str] = frozenset(CLIENTS)
    bytes_only: frozenset[str] = frozenset()
    """Clients that have no such schema, and read the payload as it is."""
    partitions: int = 0
    transaction: str | None = None
    others: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Writers and readers that are not ours and differ from each other, and why."""
    same_payload: bool = True
    """Whether the payload of every writer is that of Java's."""

    @property
    def golden(self) -> bool:
        """Whether the repository keeps what Java's client wrote: not what goes to several topics or takes time."""
        return not self.partitions and self.transaction is None and self.name != "delayed" and "java" in self.writers


def _plain() -> tuple[Fields, ...]:
    payloads = (b"-", b"\x00\xff" * 10, b"abc" * 3_000, noise(900), "ä".encode())
    return tuple(
        {"data": b64(payload), "properties": {"n": str(number), "ü": ""}, "event_time": EVENT_TIME + number}
        for number, payload in enumerate(payloads)
    )


def _keyed(count: int = 8) -> tuple[Fields, ...]:
    return tuple(
        {"data": b64(b"%d" % n), "key": f"k{n % 3}ü", "ordering_key": b64(b"o%d" % (n % 2)), "properties": {}}
        for n in range(count)
    )


def _values(*values: Any) -> tuple[Fields, ...]:
    return tuple({"value": value, "properties": {}} for value in values)


def _compressed() -> list[Encoding]:
    return [
        Encoding(f"{kind.lower()}, {'batched' if batching else 'plain'}", _plain(),
                 {"compression": kind, "batching": batching})
        for kind in ("LZ4", "ZLIB", "ZSTD", "SNAPPY") for batching in (False, True)
    ]  # fmt: skip


def _encrypted(largest: int) -> list[Encoding]:
    rsa, ec = ({"public_key": f"{kind}-public"} for kind in ("rsa", "ec"))
    large = ({"data": b64(noise(largest * 2 + 17)), "properties": {"large": "yes"}},)
    reads_rsa, reads_ec = {"private_key": "rsa-private"}, {"private_key": "ec-private"}
    ours = ONLY_JAVA_AND_OURS
    return [
        Encoding("encrypted (RSA), plain", _plain(), rsa, reads_rsa),
        Encoding("encrypted (RSA), batched, zstd", _plain(), {**rsa, "batching": True, "compression": "ZSTD"},
                 reads_rsa),
        Encoding("encrypted (RSA), chunked", large, {**rsa, "chunking": True}, reads_rsa,
                 others={("official", "java"): CHUNKS_OF_CPP}),
        Encoding("encrypted (EC), batched", _plain(), {**ec, "batching": True}, reads_ec, writers=ours, readers=ours),
    ]  # fmt: skip


_PRIMITIVES: Final[dict[str, tuple[Any, ...]]] = {
    "bytes": (b64(b""), b64(b"\x00\xff")),
    "string": ("", "grüß \N{GRINNING FACE}"),
    "boolean": (True, False),
    "int8": (-128, 0, 127),
    "int16": (-(1 << 15), (1 << 15) - 1),
    "int32": (-(1 << 31), (1 << 31) - 1),
    "int64": (-(1 << 63), (1 << 63) - 1),
    "float": (1.5, -0.0),
    "double": (0.1, -1e300),
    "date": (0, 1_700_006_400_000),
    "time": (0, 86_399_999),
    "timestamp": (0, 1_700_000_000_123),
    "instant": ([0, 0], [1_700_000_000, 123_456_000]),
    "local_date": (-1, 19_675),
    "local_time": (0, 86_399_999_999_000),
    "local_date_time": ([-1, 1_000], [19_675, 86_399_999_999_000]),
}
_OFFICIAL: Final = frozenset({"official"})


def _schemas() -> list[Encoding]:
    api = Api(name="interop", version="1", syntax=SYNTAX_PROTO3)
    api.methods.add(name="send", request_type_url="a")
    api.source_context.file_name = "ü.proto"
    proto = _values(b64(b""), b64(api.SerializeToString(deterministic=True)))
    pairs = _values({"key": "", "value": ORDER}, {"key": "kü", "value": ORDER})
    ours = ONLY_JAVA_AND_OURS
    found = []
    for kind, values in _PRIMITIVES.items():
        official = kind in ("bytes", "string")
        writers = frozenset(CLIENTS) if official else ours
        lacking = frozenset[str]() if official else _OFFICIAL
        found.append(Encoding(f"schema {kind}", _values(*values), schema=kind, writers=writers, bytes_only=lacking))
    return [
        *found,
        # the official client writes the number of an enumeration's value, which Java's takes for a position
        Encoding("schema json", _values({**ORDER, "colour": None}, SPARSE), schema="json", same_payload=False,
                 others={("java", "official"): NO_RECORD_OF_CPP}),
        Encoding("schema json with an enumeration", _values(ORDER), schema="json", same_payload=False, writers=ours),
        Encoding("schema avro", _values(ORDER, SPARSE), schema="avro"),
        Encoding("schema avro, batched, lz4", _values(ORDER, SPARSE), {"batching": True, "compression": "LZ4"},
                 schema="avro"),
        Encoding("schema protobuf", proto, schema="protobuf", writers=ours, bytes_only=_OFFICIAL),
        Encoding("schema protobuf native", proto, schema="protobuf_native"),
        Encoding("schema key-value inline", pairs, schema="pair_inline", writers=ours, bytes_only=_OFFICIAL),
        Encoding("schema key-value separated", pairs, schema="pair_separated", writers=ours, bytes_only=_OFFICIAL,
                 same_payload=False),
        *(
            Encoding(f"schema {kind}, read as auto", values, schema=kind, read_as="auto", writers=ours,
                     bytes_only=_OFFICIAL, same_payload=kind not in ("json", "pair_separated"))
            for kind, values in (
                ("string", _values("grüß")), ("int64", _values(-7)), ("json", _values(ORDER)), ("avro", _values(ORDER)),
                ("protobuf_native", proto), ("pair_inline", pairs), ("pair_separated", pairs),
            )
        ),
    ]  # fmt: skip


def encodings(largest: int = LARGEST) -> list[Encoding]:
    """Return every encoding of the matrix, in the order of its table. ``largest``: the broker's ``maxMessageSize``."""
    large = ({"data": b64(noise(largest * 3 + 17)), "key": "k", "properties": {"large": "yes"}}, *_plain()[:2])
    nothing = tuple(
        {"data": b64(b""), "key": key, "properties": {}} if n % 2 else {"null": True, "key": key, "properties": {}}
        for n, key in enumerate("abcd")
    )
    raw_keys = tuple({"data": b64(b"%d" % n), "key_bytes": b64(b"\x00\xff%d" % n), "properties": {}} for n in range(4))
    raw_orders = tuple({"data": b64(b"%d" % n), "ordering_key": b64(b"\xfe%d" % n), "properties": {}} for n in range(4))
    numbered = tuple({**one, "sequence_id": 10 * n + 5} for n, one in enumerate(_plain()))
    later = tuple({**one, "deliver_after_ms": 300} for one in _plain()[:2])
    ours = ONLY_JAVA_AND_OURS
    return [
        Encoding("plain", _plain()),
        Encoding("batched", _plain(), {"batching": True}),
        *_compressed(),
        Encoding("chunked", large, {"chunking": True}),
        Encoding("chunked, lz4", large, {"chunking": True, "compression": "LZ4"}),
        *_encrypted(largest),
        Encoding("keys and ordering keys", _keyed()),
        Encoding("keys and ordering keys, batched", _keyed(), {"batching": True}),
        Encoding("batches by key", _keyed(), {"batching": True, "by_key": True}, {"type": "Key_Shared"}),
        Encoding("keys of bytes", raw_keys, writers=ours),
        Encoding("keys of bytes, batched", raw_keys, {"batching": True}, writers=ours),
        Encoding("ordering keys of bytes", raw_orders, writers=ours, readers=ours),
        Encoding("no value, and empty ones", nothing),
        Encoding("no value, and empty ones, batched", nothing, {"batching": True}),
        Encoding("sequence ids of the application", numbered),
        Encoding("sequence ids of the application, batched", numbered, {"batching": True}),
        Encoding("delayed", later, consumer={"type": "Shared"}),
        Encoding("partitions by key", _keyed(12), partitions=3),
        *_schemas(),
        Encoding("transaction, committed", _plain(), writers=ours, transaction="commit"),
        Encoding("transaction, committed, batched", _plain(), {"batching": True}, writers=ours, transaction="commit"),
        Encoding("transaction, aborted", _plain(), writers=ours, transaction="abort"),
    ]
