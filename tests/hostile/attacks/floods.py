"""Commands without pause, and single commands with hundreds of thousands of parts."""

from __future__ import annotations

import contextlib
import threading

from magnetar.protocol.generated import pulsar_pb2 as pb
from tests.hostile.raw import TOPIC, Raw, command
from tests.hostile.victim import Target

_READ = 1 << 20


def _flood(target: Target, frames: bytes, rounds: int) -> int:
    """Say ``frames`` so many times while a thread reads whatever comes back; how many bytes came."""
    with Raw(target.broker_port, timeout=120.0) as raw:
        got = [0]

        def drain() -> None:
            with contextlib.suppress(OSError):
                while data := raw.socket.recv(_READ):
                    got[0] += len(data)

        reader = threading.Thread(target=drain, daemon=True)
        reader.start()
        with contextlib.suppress(ConnectionError):
            for _ in range(rounds):
                raw.say(frames)
        raw.socket.shutdown(1)
        reader.join(120.0)
        return got[0]


def pings(target: Target, scale: float) -> str:
    """PING as fast as the socket takes them."""
    count = int(2_000_000 * scale)
    _flood(target, command("PING") * 10_000, max(1, count // 10_000))
    return f"{count:,} PINGs"


def lookups(target: Target, scale: float) -> str:
    """LOOKUP as fast as the socket takes them, of ever new names."""
    count = int(300_000 * scale)
    for start in range(0, count, 30_000):
        frames = (
            command("LOOKUP", topic=f"{TOPIC}flood-{start + n}", request_id=n, authoritative=False)
            for n in range(30_000)
        )
        _flood(target, b"".join(frames), 1)
    return f"{count:,} LOOKUPs"


def metadata(target: Target, scale: float) -> str:
    """PARTITIONED_METADATA as fast as the socket takes them."""
    count = int(200_000 * scale)
    frames = b"".join(
        command(
            "PARTITIONED_METADATA", topic=f"{TOPIC}flood-{n % 100}", request_id=n, metadata_auto_creation_enabled=False
        )
        for n in range(10_000)
    )
    _flood(target, frames, max(1, count // 10_000))
    return f"{count:,} PARTITIONED_METADATAs"


def topic_lists(target: Target, scale: float) -> str:
    """GET_TOPICS_OF_NAMESPACE pipelined, on a namespace with a thousand topics."""
    some_topics(target, 1000)
    count = int(2_000 * scale)
    frames = b"".join(
        command("GET_TOPICS_OF_NAMESPACE", namespace="public/default", request_id=n) for n in range(count)
    )
    size = _flood(target, frames, 1)
    return f"{count:,} GET_TOPICS in {len(frames):,} bytes, {size >> 20} MB of answers"


def some_topics(target: Target, count: int) -> None:
    """So many plain topics in public/default."""
    with Raw(target.broker_port, timeout=120.0) as raw:
        for start in range(0, count, 500):
            names = range(start, min(start + 500, count))
            raw.say(
                *(
                    command(
                        "PRODUCER",
                        topic=f"{TOPIC}many-{n}",
                        producer_id=n,
                        request_id=n,
                        user_provided_producer_name=False,
                    )
                    for n in names
                )
            )
            for _ in names:
                raw.until(pb.BaseCommand.PRODUCER_SUCCESS)


def acknowledgements(target: Target, scale: float) -> str:
    """ACK and REDELIVER frames with as many ids as fit."""
    count = int(400_000 * scale)
    with Raw(target.broker_port, timeout=120.0) as raw:
        producer = raw.producer(f"{TOPIC}flood-acks")
        consumer = raw.consumer(f"{TOPIC}flood-acks", "s", initialPosition=1)
        raw.publish(producer, 100)
        raw.say(command("FLOW", consumer_id=consumer, messagePermits=1000))
        ids = [pb.MessageIdData(ledgerId=0, entryId=n) for n in range(count)]
        raw.say(command("ACK", consumer_id=consumer, ack_type=0, message_id=ids, request_id=9999))
        raw.until(pb.BaseCommand.ACK_RESPONSE)
        raw.say(command("REDELIVER_UNACKNOWLEDGED_MESSAGES", consumer_id=consumer, message_ids=ids))
        raw.say(command("REDELIVER_UNACKNOWLEDGED_MESSAGES", consumer_id=consumer, message_ids=ids[:50] * 2))
        raw.say(command("PING"))
        raw.until(pb.BaseCommand.PONG)
    return f"one ACK and one REDELIVER with {count:,} ids"


def joins(target: Target, scale: float) -> str:
    """Many Key_Shared consumers on one subscription come, and go at once."""
    count = int(1000 * scale)
    with Raw(target.broker_port, timeout=300.0) as raw:
        frames = [
            command(
                "SUBSCRIBE", topic=f"{TOPIC}flood-joins", subscription="s", subType=pb.CommandSubscribe.Key_Shared,
                consumer_id=n, request_id=n,
            )
            for n in range(count)
        ]  # fmt: skip
        raw.say(*frames)
        for _ in range(count):
            raw.until(pb.BaseCommand.SUCCESS)
        raw.say(*(command("FLOW", consumer_id=n, messagePermits=1) for n in range(count)))
        raw.say(command("PING"))
        raw.until(pb.BaseCommand.PONG)
    return f"{count:,} Key_Shared consumers joined and left"


def subscriptions(target: Target, scale: float) -> str:
    """Thousands of subscriptions on one topic, of both kinds, messages for all of them, and statistics."""
    count = int(5_000 * scale)
    sent = 0
    for topic in (f"{TOPIC}flood-subscriptions", f"{TOPIC}flood-subscriptions".replace("persistent", "non-persistent")):
        with Raw(target.broker_port, timeout=300.0) as reader, Raw(target.broker_port, timeout=300.0) as writer:
            for start in range(0, count, 500):
                numbers = range(start, min(start + 500, count))
                reader.say(
                    *(
                        command(
                            "SUBSCRIBE", topic=topic, subscription=f"s{n}", subType=pb.CommandSubscribe.Exclusive,
                            consumer_id=n, request_id=n,
                        )
                        for n in numbers
                    )
                )  # fmt: skip
                for _ in numbers:
                    reader.until(pb.BaseCommand.SUCCESS)
            reader.say(*(command("FLOW", consumer_id=n, messagePermits=100_000) for n in range(count)))
            drain = threading.Thread(target=_drain, args=(reader,), daemon=True)
            drain.start()
            producer = writer.producer(topic)
            for size in (1, 1, 50, 50, 200):
                writer.publish(producer, size)
                sent += size
            name = topic.replace("://", "/")
            for path in (f"/admin/v2/{name}/stats", f"/admin/v2/{name}/internalStats", "/metrics"):
                target.rest("GET", path)
            reader.socket.shutdown(1)
            drain.join(120.0)
        # stored subscriptions stay where they are, which is no leak: what the programme measures at its end is without
        target.rest("DELETE", f"/admin/v2/{name}?force=true")
    return f"{count:,} subscriptions on a topic, twice, {sent} messages for each of them"


def _drain(raw: Raw) -> None:
    with contextlib.suppress(OSError):
        while raw.socket.recv(_READ):
            pass
