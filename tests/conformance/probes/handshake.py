"""CONNECT and what is allowed before it."""

from __future__ import annotations

import struct

from tests.conformance.answers import Json
from tests.conformance.probe import Broker, probe
from tests.conformance.wire import command, frame


@probe("1.2.2")
def connected(broker: Broker) -> Json:
    """What CONNECTED says to clients of several protocol versions."""
    said = {}
    for version in (21, 13, 0, 99):
        said[f"client version {version}"] = broker.say(broker.raw().connect(protocol_version=version))
    wire = broker.raw()
    wire.write(frame(command("CONNECT", client_version="oracle")))
    said["no version"] = broker.say(wire.receive("CONNECTED"))
    return said


@probe("1.2.2", profile="strict")
def connected_max_message_size(broker: Broker) -> Json:
    """Whether CONNECTED advertises the configured maxMessageSize."""
    return broker.raw().connect().get("max_message_size")


@probe("1.2.2", "1.2.5", "1.2.7", "14.12")
def connect_with_flags(broker: Broker) -> Json:
    """Feature flags of the client, and a field that the protocol does not have."""
    flags = {"supports_auth_refresh": True, "supports_broker_entry_metadata": True, "supports_partial_producer": True}
    wire = broker.raw()
    data = command("CONNECT", client_version="oracle", protocol_version=21, feature_flags=flags)
    # field 900 of BaseCommand, varint 1: from some later version
    wire.write(frame(data + b"\xa0\x38\x01"))
    return broker.say(wire.receive("CONNECTED"))


@probe("1.2.1")
def ping_before_connect(broker: Broker) -> Json:
    """A PING before CONNECT, and whether the handshake still works then."""
    wire = broker.raw()
    wire.send("PING")
    return [broker.say(wire.next()), broker.say(wire.connect())]


@probe("1.2.1")
def second_connect(broker: Broker) -> Json:
    """CONNECT on a connection that is connected."""
    wire = broker.wire()
    wire.send("CONNECT", client_version="oracle", protocol_version=21)
    return {"closed": wire.closed(), "said": [broker.say(each) for each in wire.queued]}


@probe("1.2.1")
def commands_before_connect(broker: Broker) -> Json:
    """Ordinary commands before CONNECT."""
    commands: dict[str, dict[str, Json]] = {
        "LOOKUP": {"topic": broker.topic(), "request_id": 1},
        "PARTITIONED_METADATA": {"topic": broker.topic(), "request_id": 1},
        "PRODUCER": {"topic": broker.topic(), "request_id": 1, "producer_id": 1},
        "SUBSCRIBE": {
            "topic": broker.topic(), "request_id": 1, "consumer_id": 1, "subscription": "s", "subType": "Shared",
        },
        "FLOW": {"consumer_id": 1, "messagePermits": 1},
        "GET_TOPICS_OF_NAMESPACE": {"namespace": "public/default", "request_id": 1},
        "PONG": {},
    }  # fmt: skip
    said: dict[str, Json] = {}
    for kind, fields in commands.items():
        wire = broker.raw()
        wire.send(kind, **fields)
        said[kind] = {"closed": wire.closed(1.0), "said": [broker.say(each) for each in wire.queued]}
    return said


@probe("1.2.1")
def broker_only_command(broker: Broker) -> Json:
    """Commands that only a broker sends, from a client."""
    said: dict[str, Json] = {}
    commands: dict[str, dict[str, Json]] = {
        "SUCCESS": {"request_id": 1},
        "SEND_RECEIPT": {"producer_id": 1, "sequence_id": 1},
        "LOOKUP_RESPONSE": {"request_id": 1},
        "CONNECTED": {"server_version": "x"},
    }
    for kind, fields in commands.items():
        wire = broker.wire()
        wire.send(kind, **fields)
        said[kind] = {"closed": wire.closed(1.0), "said": [broker.say(each) for each in wire.queued]}
    return said


@probe("1.3.10")
def ping_pong(broker: Broker) -> Json:
    """A PING after CONNECT, and a PONG without a PING."""
    wire = broker.wire()
    wire.send("PONG")
    wire.send("PING")
    return broker.say(wire.next())


@probe("1.1.1")
def handshake_byte_by_byte(broker: Broker) -> Json:
    """A CONNECT that comes one byte at a time."""
    wire = broker.raw()
    data = frame(command("CONNECT", client_version="oracle", protocol_version=21))
    for byte in data:
        wire.write(struct.pack("B", byte))
    return broker.say(wire.receive("CONNECTED"))
