"""Making the broker hold on to bytes: unfinished frames, endless names, answers that the client does not read."""

from __future__ import annotations

import contextlib
import struct
import time
from typing import Any, Final

from magnetar.protocol.generated import pulsar_pb2 as pb
from tests.hostile.attacks.floods import some_topics
from tests.hostile.raw import TOPIC, Raw, command
from tests.hostile.victim import Target

_FRAME: Final = 5_200_000


def unfinished_frames(target: Target, scale: float) -> str:
    """A frame of 5.2 MB but for its last bytes, then the end of the connection; before and after CONNECT."""
    rounds = int(350 * scale)
    for number in range(rounds):
        with contextlib.suppress(ConnectionError), Raw(target.broker_port, greet=bool(number % 2)) as raw:
            raw.say(struct.pack(">I", _FRAME), bytes(_FRAME - 100))
    return f"{rounds} connections that leave 5.2 MB of a frame"


def held_frames(target: Target, scale: float) -> str:
    """Many connections hold an unfinished frame each, all at once."""
    rounds = int(120 * scale)
    held = []
    for number in range(rounds):
        raw = Raw(target.broker_port, greet=bool(number % 4))
        raw.socket.settimeout(2.0)  # the broker stops reading when its budget is spent
        with contextlib.suppress(ConnectionError, TimeoutError):
            raw.say(struct.pack(">I", _FRAME), bytes(_FRAME - 100))
        held.append(raw)
    time.sleep(1.0)
    for raw in held:
        raw.close()
    return f"{rounds} connections hold 5.2 MB of a frame each"


def long_names(target: Target, scale: float) -> str:
    """LOOKUP, PARTITIONED_METADATA, PRODUCER and SUBSCRIBE of names of a megabyte."""
    count = int(600 * scale)
    with Raw(target.broker_port, timeout=120.0) as raw:
        for number in range(count):
            name = f"{TOPIC}{number:06}" + "x" * 1_000_000
            kind = ("LOOKUP", "PARTITIONED_METADATA", "PRODUCER", "SUBSCRIBE")[number % 4]
            more: dict[str, Any] = {}
            if kind == "PRODUCER":
                more = {"producer_id": number}
            elif kind == "SUBSCRIBE":
                more = {"consumer_id": number, "subscription": "s", "subType": 1}
            heard = raw.ask(kind, topic=name, **more)
            assert heard.ByteSize() < 10_000, f"{kind} of a long name is answered with {heard.ByteSize()} bytes"
    return f"{count} names of 1 MB"


def unread_answers(target: Target, scale: float) -> str:
    """Ten connections ask for long answers and read none of them."""
    some_topics(target, 1000)
    count = int(2_500 * scale)
    frames = b"".join(
        command("GET_TOPICS_OF_NAMESPACE", namespace="public/default", request_id=n) for n in range(count)
    )
    held = []
    for _ in range(10):
        raw = Raw(target.broker_port, timeout=2.0)
        with contextlib.suppress(TimeoutError, ConnectionError):
            raw.say(frames)
        held.append(raw)
    time.sleep(3.0 * scale)
    for raw in held:
        raw.close()
    return f"10 connections, {len(frames):,} bytes of GET_TOPICS each, nothing read"


def unread_messages(target: Target, scale: float) -> str:
    """Consumers with two thousand million permits that read nothing of a large backlog."""
    with Raw(target.broker_port, timeout=120.0) as raw:
        producer = raw.producer(f"{TOPIC}unread")
        consumers = []
        for number in range(20):
            reader = Raw(target.broker_port, timeout=5.0)
            consumers.append(reader)
            consumer = reader.consumer(f"{TOPIC}unread", f"s{number}", initialPosition=1)
            reader.say(*[command("FLOW", consumer_id=consumer, messagePermits=2**31 - 1)] * 3)
        for _ in range(int(20 * scale) or 1):
            raw.publish(producer, 50, b"x" * 100_000)
        time.sleep(1.0)
        for reader in consumers:
            reader.close()
    return "20 consumers with 2^31 permits that read nothing"


def long_fields(target: Target, scale: float) -> str:
    """Names of producers, consumers and subscriptions, properties and reasons of megabytes."""
    count = int(60 * scale) or 1
    long = "x" * 2_000_000
    answered = 0
    for number in range(count):
        with contextlib.suppress(ConnectionError), Raw(target.broker_port, timeout=60.0) as raw:
            topic = f"{TOPIC}long-fields"
            if number % 3 == 0:
                raw.ask("PRODUCER", topic=topic, producer_id=number, producer_name=f"{number}{long}")
            elif number % 3 == 1:
                raw.ask(
                    "SUBSCRIBE", topic=topic, subscription=f"s{number % 7}", subType=pb.CommandSubscribe.Shared,
                    consumer_id=number, consumer_name=f"{number}{long}",
                    metadata=[pb.KeyValue(key=f"{number}", value=long)],
                )  # fmt: skip
            else:
                raw.ask("SUBSCRIBE", topic=topic, subscription=f"{number}{long}", subType=1, consumer_id=number)
            answered += 1
    return f"{count} commands with fields of 2 MB, {answered} answered"
