"""Compaction: what stays, under which ids, what readers and statistics show."""

from __future__ import annotations

import struct
import time
import zlib
from collections.abc import Sequence

from magnetar.protocol.generated import pulsar_pb2 as schema
from tests.conformance.answers import Json
from tests.conformance.probe import Broker, probe
from tests.conformance.roles import open_producer, place, subscribe
from tests.conformance.wire import Entry, Frame, Wire, command, entry, frame, parse_entry

MINUS_ONE = 2**64 - 1
EARLIEST = {"ledgerId": MINUS_ONE, "entryId": MINUS_ONE}
ENCRYPTED: dict[str, Json] = {
    "encryption_keys": [{"key": "k", "value": b"v"}],
    "encryption_algo": "AES",
    "encryption_param": b"iv",
}
Message = tuple[str | None, str] | tuple[str | None, str, dict[str, Json]]


def send(wire: Wire, *messages: Message) -> list[Frame]:
    """Each message alone: key, text, more metadata; on producer 1."""
    receipts = []
    for sequence, (key, text, *more) in enumerate(messages):
        fields: dict[str, Json] = dict(more[0]) if more else {}
        if key is not None:
            fields["partition_key"] = key
        wire.publish(1, sequence, text, **fields)
        receipts.append(wire.receive("SEND_RECEIPT", "SEND_ERROR"))
    return receipts


def send_batch(wire: Wire, messages: Sequence[Message], *, compressed: bool = False, **metadata: Json) -> Frame:
    """One batch; its messages' keys and more of their metadata."""
    plain = b""
    for key, text, *more in messages:
        fields: dict[str, Json] = dict(more[0]) if more else {}
        if key is not None:
            fields["partition_key"] = key
        head = schema.SingleMessageMetadata(payload_size=len(text), **fields).SerializeToString()
        plain += struct.pack(">I", len(head)) + head + text.encode()
    payload = plain
    if compressed:
        payload = zlib.compress(plain)
        metadata = {**metadata, "compression": "ZLIB", "uncompressed_size": len(plain)}
    count = len(messages)
    wire.write(
        frame(
            command("SEND", producer_id=1, sequence_id=0, num_messages=count),
            entry(payload, sequence_id=0, num_messages_in_batch=count, **metadata),
        )
    )
    return wire.receive("SEND_RECEIPT", "SEND_ERROR")


def inside(got: Entry) -> Json:
    """Messages of an entry; of a batch what each still has."""
    metadata, payload = got.metadata, got.payload
    if not metadata.HasField("num_messages_in_batch") or metadata.encryption_keys:
        return [metadata.partition_key, payload.decode(errors="replace")]
    if metadata.compression:
        payload = zlib.decompressobj().decompress(payload)
    said: list[Json] = []
    at = 0
    for _ in range(metadata.num_messages_in_batch):
        (size,) = struct.unpack_from(">I", payload, at)
        single = schema.SingleMessageMetadata.FromString(payload[at + 4 : at + 4 + size])
        at += 4 + size
        text = payload[at : at + single.payload_size].decode()
        said.append("compacted out" if single.compacted_out else [single.partition_key, text])
        at += single.payload_size
    return said


def compacted(broker: Broker, name: str = "t") -> Json:
    """PUT, and GET until it is over."""
    begun = broker.topic_rest("PUT", name, "/compaction").status
    deadline = time.monotonic() + 10
    while True:
        status = broker.topic_rest("GET", name, "/compaction").body
        if status["status"] != "RUNNING" or time.monotonic() > deadline:
            return [begun, status]
        time.sleep(0.05)


def read(broker: Broker, name: str = "t", start: Json = None, **fields: Json) -> Json:
    """What a compacted reader gets, and GET_LAST_MESSAGE_ID."""
    with Wire.open(("127.0.0.1", broker.broker_port)) as wire:
        wire.connect()
        wanted: dict[str, Json] = {"durable": False, "read_compacted": True, "start_message_id": start or EARLIEST}
        subscribe(wire, broker.topic(name), subscription="r", permits=100, **{**wanted, **fields})
        got = [
            [broker.normal.position(each.get("message_id")), inside(parse_entry(each.headers))]
            for each in wire.rest(0.6)
            if each.kind == "MESSAGE"
        ]
        last = broker.normal.position(wire.request("GET_LAST_MESSAGE_ID", consumer_id=1).get("last_message_id"))
        wire.request("CLOSE_CONSUMER", consumer_id=1)
    return {"got": got, "last": last}


@probe("4.7.4", "11.4.6")
def compaction_status(broker: Broker) -> Json:
    """GET before, PUT of an empty and of a missing topic, of a partitioned one, after an unload."""
    wire = broker.wire()
    open_producer(wire, broker.topic())
    said: dict[str, Json] = {
        "missing": [broker.topic_rest(method, "nope", "/compaction").status for method in ("GET", "PUT")],
        "before": broker.topic_rest("GET", "t", "/compaction").body,
        "empty": compacted(broker),
        "subscriptions": broker.topic_rest("GET", "t", "/subscriptions").body,
        "no view": broker.topic_rest("GET", "t", "/internalStats").body["compactedLedger"]["ledgerId"],
    }
    send(wire, ("a", "1"))
    said["one"] = compacted(broker)
    broker.topic_rest("PUT", "t", "/unload")
    time.sleep(0.5)
    said["unloaded"] = broker.topic_rest("GET", "t", "/compaction").body
    broker.topic_rest("PUT", "parted", "/partitions", 2)
    said["partitioned"] = [broker.topic_rest(method, "parted", "/compaction").status for method in ("PUT", "GET")]
    return said


@probe("4.7.4", "5.9.12", "5.9.13")
def compacted_single_messages(broker: Broker) -> Json:
    """Last values, no key, deletions with and without a size and null_value; after the horizon; compacted again."""
    wire = broker.wire()
    open_producer(wire, broker.topic())
    empty: dict[str, Json] = {"uncompressed_size": 0}
    null: dict[str, Json] = {"null_value": True}
    send(
        wire,
        ("a", "a1"), ("b", "b1"), ("a", "a2"), (None, "no key"),
        ("c", "c1"), ("c", "", empty), ("d", "d1"), ("d", ""),
        ("e", "e1"), ("e", "", null), ("f", "f1"), ("f", "", {**null, **empty}),
    )  # fmt: skip
    said: dict[str, Json] = {"compacted": compacted(broker), "first": read(broker)}
    said["removed"] = broker.topic_rest("GET", "t", "/stats").body["compaction"]["lastCompactionRemovedEventCount"]
    receipts = send(wire, ("a", "", empty), ("b", "b2"))
    said["behind the horizon"] = read(broker)
    said["from the last id"] = read(broker, start=place(receipts[1]))
    said["again"] = compacted(broker)
    said["second"] = read(broker)
    said["removed again"] = broker.topic_rest("GET", "t", "/stats").body["compaction"][
        "lastCompactionRemovedEventCount"
    ]
    said["not compacted"] = read(broker, read_compacted=False)
    return said


@probe("4.7.4", "14.13")
def compacted_batches(broker: Broker) -> Json:
    """Messages of batches, compressed ones, encrypted ones with and without a key; then the subscription is deleted."""
    wire = broker.wire()
    open_producer(wire, broker.topic())
    send_batch(wire, [("k1", "v1"), ("k2", "v1"), (None, "no key"), ("k3", "v1")])
    send_batch(wire, [("k1", "v2"), ("k4", "v1"), ("k3", "")], compressed=True)
    send_batch(wire, [("k5", "v1"), ("k4", "", {"null_value": True})])
    send_batch(wire, [("k5", "v2")])
    send_batch(wire, [(None, "x"), (None, "y")])
    send_batch(wire, [("k6", "secret")], partition_key="k6", **ENCRYPTED)
    send_batch(wire, [("k7", "secret")], **ENCRYPTED)
    send(wire, ("k8", "secret", ENCRYPTED))
    said: dict[str, Json] = {"compacted": compacted(broker), "read": read(broker)}
    said["removed"] = broker.topic_rest("GET", "t", "/stats").body["compaction"]["lastCompactionRemovedEventCount"]
    send_batch(wire, [("k1", "v3"), ("k9", "v1"), ("k9", "")])
    said["again"] = [compacted(broker), read(broker)]
    said["deleted"] = broker.topic_rest("DELETE", "t", "/subscription/__compaction").status
    said["status"] = broker.topic_rest("GET", "t", "/compaction").body
    said["entries"] = len(read(broker)["got"])
    return said


@probe("4.7.4", "5.9.12")
def everything_compacted_away(broker: Broker) -> Json:
    """Every key deleted: nothing to read, and what GET_LAST_MESSAGE_ID says."""
    wire = broker.wire()
    open_producer(wire, broker.topic())
    send(wire, ("a", "1"), ("a", "", {"uncompressed_size": 0}))
    said: dict[str, Json] = {"compacted": compacted(broker), "read": read(broker)}
    said["entries"] = broker.topic_rest("GET", "t", "/internalStats").body["compactedLedger"]["entries"]
    send(wire, ("b", "1"))
    said["one more"] = read(broker)
    return said


@probe("4.7.4", "14.11")
def compacted_chunks(broker: Broker) -> Json:
    """Two messages of one key in two chunks each."""
    wire = broker.wire()
    open_producer(wire, broker.topic())
    for uuid in ("u1", "u2"):
        for chunk in range(2):
            fields = {"uuid": uuid, "num_chunks_from_msg": 2, "chunk_id": chunk, "total_chunk_msg_size": 4}
            send(wire, ("a", f"c{chunk}", fields))
    compacted(broker)
    return read(broker)


@probe("4.3.9", "4.2.6")
def compaction_subscription(broker: Broker) -> Json:
    """The subscription __compaction in stats and internalStats, backlog before and after."""
    wire = broker.wire()
    open_producer(wire, broker.topic())
    send(wire, ("a", "1"), ("a", "2"))
    compacted(broker)
    send(wire, ("a", "3"))

    def shown() -> Json:
        stats = broker.topic_rest("GET", "t", "/stats").body
        known = stats["subscriptions"]["__compaction"]
        return {
            name: known[name] for name in ("type", "msgBacklog", "isDurable", "subscriptionProperties", "consumers")
        }

    internal = broker.topic_rest("GET", "t", "/internalStats").body
    cursor = internal["cursors"]["__compaction"]
    said: dict[str, Json] = {"stats": shown(), "same ledger": None}
    said["same ledger"] = cursor["properties"] == {"CompactedTopicLedger": internal["compactedLedger"]["ledgerId"]}
    said["entries"] = internal["compactedLedger"]["entries"]
    said["mark"] = cursor["markDeletePosition"].partition(":")[2]
    compacted(broker)
    said["caught up"] = shown()
    return said


@probe("5.9.13", "5.9.2")
def compacted_consumer(broker: Broker) -> Json:
    """A durable Exclusive and a Failover consumer that read compacted; a seek to an id that was compacted away."""
    wire = broker.wire()
    open_producer(wire, broker.topic())
    receipts = send(wire, ("a", "1"), ("b", "1"), ("a", "2"), ("c", "1"), ("b", "2"))
    compacted(broker)
    said: dict[str, Json] = {}
    for kind in ("Exclusive", "Failover"):
        subscribe(
            wire,
            broker.topic(),
            kind,
            1,
            subscription=kind,
            permits=100,
            read_compacted=True,
            initialPosition="Earliest",
        )
        time.sleep(1.2)
        said[kind] = [inside(parse_entry(each.headers)) for each in wire.rest(0.4) if each.kind == "MESSAGE"]
        wire.request("SEEK", consumer_id=1, message_id=place(receipts[1]))
        list(wire.rest(0.2))
        subscribe(wire, broker.topic(), kind, 2, subscription=kind, permits=100, read_compacted=True)
        time.sleep(1.2)
        said[f"{kind} after a seek"] = [
            inside(parse_entry(each.headers)) for each in wire.rest(0.4) if each.kind == "MESSAGE"
        ]
        wire.request("CLOSE_CONSUMER", consumer_id=2)
    return said
