"""What probes do again and again: open a producer, subscribe, take messages, ack them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from tests.conformance.answers import Json
from tests.conformance.wire import ClosedError, Frame, SilentError, Wire, parse_entry


def open_producer(wire: Wire, topic: str, producer_id: int = 1, **fields: Json) -> Frame:
    return wire.request("PRODUCER", topic=topic, producer_id=producer_id, **fields)


def produce(wire: Wire, topic: str, messages: Sequence[str], producer_id: int = 1, **metadata: Json) -> list[Frame]:
    """Publish each message alone on a producer that is opened for it; the receipts."""
    open_producer(wire, topic, producer_id)
    receipts = []
    for sequence, message in enumerate(messages):
        wire.publish(producer_id, sequence, message, **metadata)
        receipts.append(wire.receive("SEND_RECEIPT", "SEND_ERROR"))
    wire.request("CLOSE_PRODUCER", producer_id=producer_id)
    return receipts


def produce_batch(
    wire: Wire, topic: str, batches: Sequence[Sequence[str]], producer_id: int = 1, *, counted: bool = True
) -> list[Frame]:
    """Publish batches, likewise; ``counted``: each SEND names the number of messages."""
    open_producer(wire, topic, producer_id)
    receipts = []
    for sequence, messages in enumerate(batches):
        wire.publish_batch(producer_id, sequence * 100, messages, counted=counted)
        receipts.append(wire.receive("SEND_RECEIPT", "SEND_ERROR"))
    wire.request("CLOSE_PRODUCER", producer_id=producer_id)
    return receipts


def subscribe(
    wire: Wire, topic: str, kind: str = "Exclusive", consumer_id: int = 1, *, permits: int = 0, **fields: Json
) -> Frame:
    """Subscribe as `s` unless another name is given, and give permits if any."""
    known: dict[str, Json] = {"topic": topic, "subscription": "s", "subType": kind, "consumer_id": consumer_id}
    known["consumer_name"] = f"c{consumer_id}"
    answer = wire.request("SUBSCRIBE", **{**known, **fields})
    if permits:
        flow(wire, permits, consumer_id)
    return answer


def until(kind: str, ask: Callable[[], Frame], seconds: float = 5.0) -> Frame:
    """Ask again and again until the answer is of that kind: for what a broker needs a moment to notice."""
    deadline = time.monotonic() + seconds
    while True:
        answer = ask()
        if answer.kind == kind or time.monotonic() > deadline:
            return answer
        time.sleep(0.05)


def flow(wire: Wire, permits: int, consumer_id: int = 1) -> None:
    wire.send("FLOW", consumer_id=consumer_id, messagePermits=permits)


def take(wire: Wire, count: int, seconds: float = 10.0) -> list[Frame]:
    """That many MESSAGE frames, or as many as came in time."""
    got: list[Frame] = []
    try:
        while len(got) < count:
            got.append(wire.receive("MESSAGE", seconds=seconds))
    except (SilentError, ClosedError):
        pass
    return got


def texts(frames: Sequence[Frame]) -> list[str]:
    """The messages of MESSAGE frames, batches unpacked."""
    return [text for frame in frames if frame.kind == "MESSAGE" for text in parse_entry(frame.headers).texts()]


def more(wire: Wire, quiet: float = 0.4) -> list[str]:
    """Messages that still come although none is expected."""
    return texts(list(wire.rest(quiet)))


def place(frame: Frame) -> dict[str, int]:
    """The message id of a MESSAGE or of a receipt, to be sent back."""
    message_id = frame.get("message_id")
    return {"ledgerId": message_id.ledgerId, "entryId": message_id.entryId}


def ack(wire: Wire, places: Sequence[Json], kind: str = "Individual", consumer_id: int = 1) -> Frame:
    """Acknowledge and wait for the receipt, so that whatever comes next sees it done."""
    wire.requests += 1
    number = wire.requests
    wire.send("ACK", consumer_id=consumer_id, ack_type=kind, message_id=list(places), request_id=number)
    return wire.receive("ACK_RESPONSE")
