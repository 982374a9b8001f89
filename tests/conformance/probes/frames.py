"""Broken, oversized and unusual frames."""

from __future__ import annotations

import struct

from tests.conformance.answers import Json
from tests.conformance.probe import Broker, probe
from tests.conformance.roles import open_producer, subscribe, take
from tests.conformance.wire import command, entry, frame, parse_entry

GARBAGE: dict[str, bytes] = {
    "HTTP": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "total size 0": struct.pack(">I", 0),
    "empty command": struct.pack(">II", 4, 0),
    "command longer than the frame": struct.pack(">II", 8, 400) + b"\0" * 4,
    "not protobuf": frame(b"\xff" * 16),
    "type without its message": frame(b"\x08\x07"),
    "unknown type 69": frame(b"\x08\x45"),
    "required field missing": frame(command("FLOW", consumer_id=1)),
    "negative size": b"\xff\xff\xff\xff" + b"\0" * 64,
}


@probe("1.2.1", "1.1.1")
def garbage(broker: Broker) -> Json:
    """Bytes that are no frame, after the handshake; the effect on another connection."""
    bystander = broker.wire()
    said: dict[str, Json] = {}
    for name, data in GARBAGE.items():
        wire = broker.wire()
        wire.write(data)
        said[name] = {"closed": wire.closed(1.0), "said": [broker.say(each) for each in wire.queued]}
    said["bystander alive"] = bystander.alive()
    return said


@probe("1.2.1")
def garbage_first(broker: Broker) -> Json:
    """Bytes that are no frame, as the first ones of a connection."""
    said: dict[str, Json] = {}
    for name, data in GARBAGE.items():
        wire = broker.raw()
        wire.write(data)
        said[name] = {"closed": wire.closed(1.0), "said": [broker.say(each) for each in wire.queued]}
    return said


@probe("1.1.7", profile="strict")
def oversized_frame(broker: Broker) -> Json:
    """Frames just at and just over maxMessageSize + 10 KiB, by their announced size alone."""
    limit = 1024000 + 10240
    said: dict[str, Json] = {}
    for name, total in {"at the limit": limit - 4, "one more": limit - 3, "4 GiB": 2**32 - 1}.items():
        wire = broker.wire()
        wire.write(struct.pack(">I", total) + b"\0" * 8)
        said[name] = {"closed": wire.closed(1.0)}
    return said


@probe("1.1.5")
def bad_checksum(broker: Broker) -> Json:
    """A SEND whose checksum is wrong, then a good one on the same producer."""
    wire = broker.wire()
    open_producer(wire, broker.topic())
    wire.write(frame(command("SEND", producer_id=1, sequence_id=0), entry(b"bad", checksum=12345)))
    bad = wire.next()
    wire.publish(1, 1, "good", producer_name="p")
    return [broker.say(bad), broker.say(wire.next())]


@probe("1.1.4", "1.1.2")
def no_checksum(broker: Broker) -> Json:
    """A SEND without the checksum block, and in which form it is delivered."""
    wire = broker.wire()
    subscribe(wire, broker.topic(), permits=10)
    open_producer(wire, broker.topic())
    wire.write(frame(command("SEND", producer_id=1, sequence_id=0), entry(b"plain", magic=False)))
    receipt = wire.receive("SEND_RECEIPT", "SEND_ERROR")
    got = take(wire, 1)
    magic = [each.headers[:2].hex() for each in got]
    return {"receipt": broker.say(receipt), "got": [broker.say(each) for each in got], "first bytes": magic}


@probe("1.1.9")
def metadata_untouched(broker: Broker) -> Json:
    """Whether metadata come back byte for byte: unknown fields, a batch of one, an order of fields of its own."""
    wire = broker.wire()
    subscribe(wire, broker.topic(), permits=10)
    open_producer(wire, broker.topic())
    sent = entry(
        b"\0\0\0\2\x18\1x", num_messages_in_batch=1, publish_time=12345, properties=[{"key": "a", "value": "b"}]
    )
    wire.write(frame(command("SEND", producer_id=1, sequence_id=0, num_messages=1), sent))
    got = take(wire, 1)
    return [each.headers == sent for each in got]


@probe("1.1.2")
def payload_without_metadata(broker: Broker) -> Json:
    """A SEND without anything after the command."""
    wire = broker.wire()
    open_producer(wire, broker.topic())
    wire.send("SEND", producer_id=1, sequence_id=0)
    return {"closed": wire.closed(1.0), "said": [broker.say(each) for each in wire.queued]}


@probe("3.7.6")
def empty_payload(broker: Broker) -> Json:
    """A message of no bytes."""
    wire = broker.wire()
    subscribe(wire, broker.topic(), permits=10)
    open_producer(wire, broker.topic())
    wire.publish(1, 0, "")
    wire.receive("SEND_RECEIPT")
    return [parse_entry(each.headers).payload.hex() for each in take(wire, 1)]


@probe("1.1.6")
def entry_metadata_not_exposed(broker: Broker) -> Json:
    """Whether a client that understands broker entry metadata gets them by default."""
    wire = broker.raw()
    wire.connect(feature_flags={"supports_broker_entry_metadata": True})
    subscribe(wire, broker.topic(), permits=10)
    open_producer(wire, broker.topic())
    wire.publish(1, 0, "m")
    return [each.headers[:2].hex() for each in take(wire, 1)]
