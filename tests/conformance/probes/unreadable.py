"""Messages whose metadata nobody can read, and commands far larger than any client's."""

from __future__ import annotations

import struct
from collections.abc import Callable

from tests.conformance.answers import Json
from tests.conformance.probe import Broker, probe
from tests.conformance.roles import flow, open_producer, subscribe, until
from tests.conformance.wire import ClosedError, Frame, SilentError, Wire, checked, command, frame

METADATA: dict[str, bytes] = {
    "no protobuf": struct.pack(">I", 8) + b"\xff" * 8 + b"payload",
    "longer than the entry": struct.pack(">I", 4000) + b"payload",
    "longer than any entry": struct.pack(">I", 2**32 - 1) + b"payload",
    "none": struct.pack(">I", 0) + b"payload",
    "three bytes": b"\0\0\0",
}
LARGE: dict[str, Callable[[Broker, int], bytes]] = {
    "LOOKUP": lambda broker, size: command("LOOKUP", topic=broker.topic() + "x" * size, request_id=7),
    "PRODUCER, metadata": lambda broker, size: command(
        "PRODUCER", topic=broker.topic(), producer_id=1, request_id=7, metadata=[{"key": "k", "value": "v" * size}]
    ),
    "SUBSCRIBE, metadata": lambda broker, size: command(
        "SUBSCRIBE", topic=broker.topic(), subscription="s", subType="Shared", consumer_id=1, request_id=7,
        metadata=[{"key": "k", "value": "v" * size}],
    ),
}  # fmt: skip


def heard(broker: Broker, wire: Wire, quiet: float) -> Json:
    """What came, by kind, and whether the connection is still there."""
    found: list[Json] = []
    ended = "open"
    try:
        while True:
            found.append(seen(broker, wire.next(quiet)))
    except SilentError:
        pass
    except ClosedError:
        ended = "closed"
    return {"heard": found, "then": ended}


def seen(broker: Broker, got: Frame) -> Json:
    if got.kind == "ERROR" or got.kind == "SEND_ERROR":
        return broker.say(got)
    return f"MESSAGE, {len(got.headers)} bytes" if got.kind == "MESSAGE" else got.kind


@probe("1.1.2", "1.1.5")
def unreadable_metadata(broker: Broker) -> Json:
    """SENDs with a right checksum over metadata that cannot be read, between two good ones: answers and deliveries.

    The first consumer's connection ends, and another one comes.
    """
    said: dict[str, Json] = {}
    for number, (name, body) in enumerate(METADATA.items()):
        for kind in ("Exclusive", "Shared"):
            topic = broker.topic(f"{kind.lower()}-{number}")
            sender = broker.wire()
            open_producer(sender, topic)
            early = broker.wire()
            subscribe(early, topic, kind, permits=100)
            sender.publish(1, 0, "before")
            sender.write(frame(command("SEND", producer_id=1, sequence_id=1), checked(body)))
            sender.publish(1, 2, "after")
            answers = heard(broker, sender, 1.0)
            first = heard(broker, early, 1.0)
            early.close()
            late = broker.wire()
            until("SUCCESS", lambda wire=late, topic=topic, kind=kind: subscribe(wire, topic, kind))  # type: ignore[misc]
            flow(late, 100)
            said[f"{name}, {kind}"] = {"sender": answers, "consumer": first, "the next one": heard(broker, late, 1.0)}
    return said


@probe("1.1.7")
def large_commands(broker: Broker) -> Json:
    """Commands of half a megabyte, and of one and two and a half: answered, or the end of the connection."""
    said: dict[str, Json] = {}
    for name, make in LARGE.items():
        for size in (500_000, 1_200_000, 2_500_000):
            wire = broker.wire()
            wire.write(frame(make(broker, size)))
            got = heard(broker, wire, 2.0)
            kinds = [next(iter(each)) if isinstance(each, dict) else each for each in got["heard"]]
            said[f"{name}, {size}"] = [kinds, got["then"]]
    return said
