"""Chunked messages: who gets the chunks, what they cost."""

from __future__ import annotations

from tests.conformance.answers import Json
from tests.conformance.probe import Broker, probe
from tests.conformance.roles import flow, open_producer, subscribe
from tests.conformance.wire import Wire, command, entry, frame, parse_entry


def publish_chunks(wire: Wire, topic: str, messages: int, chunks: int, **more: Json) -> None:
    """Interleaved: the first chunk of each message, then the second of each."""
    open_producer(wire, topic, 9)
    for chunk in range(chunks):
        for message in range(messages):
            send = command("SEND", producer_id=9, sequence_id=message, is_chunk=True)
            said = entry(
                f"{message}".encode(), sequence_id=message, uuid=f"u{message}", num_chunks_from_msg=chunks,
                chunk_id=chunk, total_chunk_msg_size=chunks, **more,
            )  # fmt: skip
            wire.write(frame(send, said))
            wire.receive("SEND_RECEIPT")
    wire.request("CLOSE_PRODUCER", producer_id=9)


def together(got: list[list[str]], messages: int) -> bool:
    return all(sum(1 for each in got if str(message) in each) == 1 for message in range(messages))


@probe("3.6.6", "0.13", "3.6.5")
def chunks_stay_together(broker: Broker) -> Json:
    """Six messages of five interleaved chunks each over three consumers, Shared and Key_Shared."""
    said: dict[str, Json] = {}
    for kind in ("Shared", "Key_Shared"):
        topic = broker.topic(kind)
        wires = [broker.wire() for _ in range(3)]
        for number, wire in enumerate(wires):
            subscribe(wire, topic, kind, number)
        publish_chunks(broker.wire(), topic, 6, 5)
        for number, wire in enumerate(wires):
            flow(wire, 100, number)
        got = [[parse_entry(frame.headers).texts()[0] for frame in wire.rest(1.0)] for wire in wires]
        said[kind] = {"all": sum(map(len, got)), "together": together(got, 6)}
    return said


@probe("3.6.6", "5.2.1")
def chunks_and_permits(broker: Broker) -> Json:
    """Every chunk costs one permit."""
    wire, topic = broker.wire(), broker.topic()
    subscribe(wire, topic, "Shared")
    publish_chunks(broker.wire(), topic, 2, 4)
    flow(wire, 5)
    first = len(list(wire.rest(0.7)))
    stats = broker.topic_rest("GET", "t", "/stats").body["subscriptions"]["s"]
    flow(wire, 10)
    return {
        "of five permits": first,
        "permits left": stats["consumers"][0]["availablePermits"],
        "unacked": stats["unackedMessages"],
        "then": len(list(wire.rest(0.7))),
    }
