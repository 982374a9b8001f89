"""Deduplication, and what else a topic checks of messages: their size, whether they are encrypted."""

from __future__ import annotations

from tests.conformance.answers import Json
from tests.conformance.probe import Broker, probe
from tests.conformance.roles import open_producer, until
from tests.conformance.wire import Wire, command, entry, frame


def _policy(broker: Broker, name: str, value: Json) -> None:
    """A policy of the topic, once it holds: reading it back says so."""
    broker.topic_rest("POST", "t", f"/{name}", value)
    until_it_holds = 50
    while until_it_holds and broker.topic_rest("GET", "t", f"/{name}").told().get("body") != value:
        until_it_holds -= 1


def _deduplicated(broker: Broker, wire: Wire) -> None:
    open_producer(wire, broker.topic(), 99, producer_name="first")
    _policy(broker, "deduplicationEnabled", True)

    def status() -> str:
        return str(broker.topic_rest("GET", "t", "/stats").told()["body"]["deduplicationStatus"])

    for _ in range(200):
        if status() == "Enabled":
            break


def _send(broker: Broker, wire: Wire, sequence_id: int, payload: bytes = b"m", **fields: Json) -> Json:
    producer_id = fields.pop("producer_id", 1)
    metadata = fields.pop("metadata", {})
    assert isinstance(metadata, dict)
    body = entry(payload, sequence_id=sequence_id, **metadata)
    wire.write(frame(command("SEND", producer_id=producer_id, sequence_id=sequence_id, **fields), body))
    return broker.say(wire.receive("SEND_RECEIPT", "SEND_ERROR"))


@probe("3.4.2", "3.4.3", "3.4.5", "3.4.6")
def duplicates(broker: Broker) -> Json:
    """Sequence ids that repeat, jump, go back; batches with the highest id, repeated and overlapping."""
    wire = broker.wire()
    _deduplicated(broker, wire)
    said: list[Json] = [broker.say(open_producer(wire, broker.topic(), 1, producer_name="p"))]
    for sequence_id in (0, 1, 1, 5, 3, 5, 6):
        said.append(_send(broker, wire, sequence_id))
    for first, last in ((10, 14), (10, 14), (12, 13), (14, 14), (15, 3), (15, 15), (16, 17)):
        said.append(_send(broker, wire, first, highest_sequence_id=last))
    return said


@probe("3.4.6")
def overlapping_batch(broker: Broker) -> Json:
    """A batch that begins with what is stored and ends with what is not."""
    wire = broker.wire()
    _deduplicated(broker, wire)
    open_producer(wire, broker.topic(), 1, producer_name="p")
    return [_send(broker, wire, 0, highest_sequence_id=4), _send(broker, wire, 3, highest_sequence_id=6)]


@probe("3.1.5", "3.4.9")
def last_sequence_id(broker: Broker) -> Json:
    """What answer a returning producer gets: after closing, after unloading, under another name."""
    wire, topic = broker.wire(), broker.topic()
    _deduplicated(broker, wire)
    open_producer(wire, topic, 1, producer_name="p")
    _send(broker, wire, 7)
    wire.request("CLOSE_PRODUCER", producer_id=1)
    said = [broker.say(open_producer(wire, topic, 2, producer_name=name)) for name in ("p",)]
    said.append(broker.say(open_producer(wire, topic, 3, producer_name="q")))
    broker.topic_rest("PUT", "t", "/unload")
    again = broker.wire()
    again.request("LOOKUP", topic=topic)
    said.append(broker.say(until("PRODUCER_SUCCESS", lambda: open_producer(again, topic, 1, producer_name="p"))))
    said.append(_send(broker, again, 7))
    return said


@probe("3.4.7")
def chunks_twice(broker: Broker) -> Json:
    """A message of two chunks, sent twice."""
    wire = broker.wire()
    _deduplicated(broker, wire)
    open_producer(wire, broker.topic(), 1, producer_name="p")
    said: list[Json] = []
    for chunk in (0, 1, 0, 1):
        metadata: dict[str, Json] = {
            "producer_name": "p", "uuid": "p-0", "num_chunks_from_msg": 2, "total_chunk_msg_size": 2, "chunk_id": chunk,
        }  # fmt: skip
        said.append(_send(broker, wire, 0, is_chunk=True, metadata=metadata))
    return said


@probe("3.3.7")
def large_for_the_topic(broker: Broker) -> Json:
    """A message larger than the topic's maxMessageSize, and the one after it; the same as a chunk."""
    wire = broker.wire()
    open_producer(wire, broker.topic(), 1, producer_name="p")
    _policy(broker, "maxMessageSize", 200)
    large = b"x" * 300
    # the policy reaches a loaded topic after a while
    first: Json = None
    for number in range(200):
        first = _send(broker, wire, number, large)
        if isinstance(first, dict) and "SEND_ERROR" in first:
            break
    return [
        _timeless(first),
        *(_timeless(_send(broker, wire, 1000 + n, b"x", **how)) for n, how in enumerate(({}, {"is_chunk": True}))),
    ]


def _timeless(said: Json) -> Json:
    """How many large ones had gone through before is chance."""
    for fields in said.values() if isinstance(said, dict) else ():
        if isinstance(fields, dict):
            fields.pop("message_id", None)
            fields.pop("sequence_id", None)
    return said
