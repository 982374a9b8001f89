"""Numbers that a client claims and that nothing on the broker's side bears out."""

from __future__ import annotations

import contextlib
import struct
from urllib.parse import quote

from magnetar.protocol.frames import with_checksum
from magnetar.protocol.generated import pulsar_pb2 as pb
from tests.hostile.raw import TOPIC, Raw, command, send_frame
from tests.hostile.victim import Target

_JSON = {"content-type": "application/json"}
_HUGE = (1, 2**31 - 1, -1, -(2**31), 0, 10_000_000)


def partitions(target: Target, scale: float) -> str:
    """Partitioned topics with a thousand million partitions, made, grown and by policy."""
    base = "/admin/v2/persistent/public/default"
    for number in (1_000_000_000, 2**31 - 1, 100_000_000):
        status, answer = target.rest("PUT", f"{base}/absurd-{number}/partitions", number)
        assert 400 <= status < 500, f"{number} partitions: {status} {answer}"
    status, answer = target.rest("PUT", f"{base}/modest/partitions", 2)
    assert status in (204, 409), answer
    status, answer = target.rest("POST", f"{base}/modest/partitions", 1_000_000_000)
    assert 400 <= status < 500, f"grown to 10^9 partitions: {status} {answer}"
    status, answer = target.rest("GET", f"{base}/modest/partitions")
    assert (status, answer["partitions"]) == (200, 2), answer
    return "10^8 to 2^31-1 partitions refused"


def batch_sizes(target: Target, scale: float) -> str:
    """ACKs whose batch size and words have nothing to do with the entry."""
    with Raw(target.broker_port, timeout=120.0) as raw:
        topic = f"{TOPIC}absurd-batches"
        producer = raw.producer(topic)
        consumer = raw.consumer(topic, "s", initialPosition=1)
        raw.publish(producer, 50)
        raw.say(command("FLOW", consumer_id=consumer, messagePermits=100))
        ids = [raw.until(pb.BaseCommand.MESSAGE).message.message_id for _ in range(50)]
        count = int(400 * scale) or 1
        for number in range(count):
            one = ids[number % 50]
            raw.say(
                command(
                    "ACK", consumer_id=consumer, ack_type=number % 2,
                    message_id=[
                        pb.MessageIdData(
                            ledgerId=one.ledgerId, entryId=one.entryId, batch_size=_HUGE[number % len(_HUGE)],
                            batch_index=number % 3, ack_set=[-1] * (number % 2000),
                        )
                    ],
                    request_id=raw.new_id(),
                )
            )  # fmt: skip
            raw.until(pb.BaseCommand.ACK_RESPONSE)
    return f"{count} ACKs with batch sizes up to 2^31-1"


def sticky_ranges(target: Target, scale: float) -> str:
    """A Key_Shared consumer with hundreds of thousands of hash ranges."""
    count = int(400_000 * scale)
    ranges = [pb.IntRange(start=n % 5000, end=n % 5000) for n in range(count)]
    with contextlib.suppress(ConnectionError), Raw(target.broker_port, timeout=60.0) as raw:
        heard = raw.ask(
            "SUBSCRIBE", topic=f"{TOPIC}absurd-ranges", subscription="s", subType=pb.CommandSubscribe.Key_Shared,
            consumer_id=1, keySharedMeta={"keySharedMode": 1, "hashRanges": ranges},
        )  # fmt: skip
        assert heard.type == pb.BaseCommand.ERROR, heard
    return f"{count:,} sticky ranges"


def seeks(target: Target, scale: float) -> str:
    """SEEK with every absurd id; afterwards somebody else seeks on the same subscription."""
    topic = f"{TOPIC}absurd-seeks"
    with Raw(target.broker_port, timeout=60.0) as raw:
        raw.publish(raw.producer(topic), 20)
    for batch_size in _HUGE:
        for entry in (-1, 0, 2**63 - 1):
            with contextlib.suppress(ConnectionError), Raw(target.broker_port, timeout=30.0) as raw:
                consumer = raw.consumer(topic, "s", initialPosition=1)
                raw.ask(
                    "SEEK", consumer_id=consumer,
                    message_id={
                        "ledgerId": 0, "entryId": entry & (2**64 - 1), "batch_size": batch_size, "batch_index": -7,
                    },
                )  # fmt: skip
    with Raw(target.broker_port, timeout=30.0) as raw:
        consumer = raw.consumer(topic, "s")
        heard = raw.ask("SEEK", consumer_id=consumer, message_id={"ledgerId": 2**64 - 1, "entryId": 2**64 - 1})
        assert heard.type == pb.BaseCommand.SUCCESS, f"a later seek of somebody else: {heard}"
    return "18 absurd SEEKs, and a later one that works"


def permits(target: Target, scale: float) -> str:
    """FLOW of 2^31 and more, again and again."""
    topic = f"{TOPIC}absurd-permits"
    with Raw(target.broker_port, timeout=60.0) as raw:
        producer = raw.producer(topic)
        consumer = raw.consumer(topic, "s", initialPosition=1)
        for number in (2**31 - 1, 2**31, 2**32 - 1):
            raw.say(command("FLOW", consumer_id=consumer, messagePermits=number))
        raw.say(command("PING"))
        with contextlib.suppress(ConnectionError):
            raw.until(pb.BaseCommand.PONG)
            raw.publish(producer, 3)
    return "permits of 2^31-1 to 2^32-1"


def entry_claiming(**fields: int | str | bytes) -> bytes:
    """An entry whose metadata says what it likes."""
    metadata = pb.MessageMetadata(producer_name="hostile", sequence_id=1, publish_time=1)
    for name, value in fields.items():
        setattr(metadata, name, value)
    body = metadata.SerializePartialToString()
    return with_checksum(struct.pack(">I", len(body)) + body + b"payload")


def poisoned_entries(target: Target, scale: float) -> str:
    """Entries with unreadable or untrue metadata; afterwards expiry, TTL and reading work on that topic."""
    name = "absurd-entries"
    topic = TOPIC + name
    entries = [
        with_checksum(struct.pack(">I", 4) + b"\xff\xff\xff\xff" + b"payload"),
        with_checksum(struct.pack(">I", 2**31 - 1) + b"\x0a\x01a"),
        with_checksum(b""),
        with_checksum(struct.pack(">I", 0)),
        entry_claiming(uncompressed_size=2**32 - 1, compression=3),
        entry_claiming(uncompressed_size=2**32 - 1, compression=2),
        entry_claiming(uncompressed_size=2**32 - 1, compression=1),
        entry_claiming(num_messages_in_batch=2**31 - 1),
        entry_claiming(num_messages_in_batch=-5),
        entry_claiming(publish_time=2**64 - 1),
        entry_claiming(event_time=2**64 - 1, deliver_at_time=2**63 - 1),
        entry_claiming(deliver_at_time=-(2**63)),
        entry_claiming(uuid="u", num_chunks_from_msg=2**31 - 1, total_chunk_msg_size=2**31 - 1, chunk_id=2**31 - 1),
        entry_claiming(sequence_id=2**64 - 1, highest_sequence_id=2**64 - 1),
        entry_claiming(marker_type=2**31 - 1),
        entry_claiming(txnid_least_bits=2**64 - 1, txnid_most_bits=2**64 - 1),
    ]
    stored = 0
    for number, entry in enumerate(entries):
        for claimed in (1, 2**31 - 1, -1):
            with contextlib.suppress(ConnectionError), Raw(target.broker_port, timeout=30.0) as raw:
                producer = raw.producer(topic)
                raw.say(send_frame(producer, number, entry, num_messages=claimed))
                stored += raw.hear().type == pb.BaseCommand.SEND_RECEIPT
    with Raw(target.broker_port, timeout=60.0) as raw:
        raw.consumer(topic, "s", initialPosition=1)
        raw.publish(raw.producer(topic), 5)
    base = f"/admin/v2/persistent/public/default/{quote(name)}"
    for method, path in (
        ("POST", f"{base}/subscription/s/expireMessages/1"),
        ("POST", f"{base}/all_subscription/expireMessages/1"),
        ("GET", f"{base}/stats?getPreciseBacklog=true"),
        ("GET", f"{base}/internalStats"),
        ("GET", f"{base}/subscription/s/analyzeBacklog"),
        ("GET", f"{base}/messageid/1"),
        *(("GET", f"{base}/examinemessage?initialPosition=earliest&messagePosition={n}") for n in range(1, 20)),
        *(("GET", f"{base}/subscription/s/position/{n}") for n in range(1, 20)),
    ):
        status, answer = target.rest(method, path)
        assert status < 500, f"{method} {path}: {status} {answer}"
    return f"{len(entries)} sorts of untrue entries, {stored} stored"


def numbers_in_rest(target: Target, scale: float) -> str:
    """Ten thousand digits, not-a-number and nesting where a small number is wanted."""
    base = "/admin/v2/persistent/public/default/absurd-json"
    target.rest("PUT", base)
    for body in ("9" * 10_000, "NaN", "1e400", "-1", "[" * 50_000, '{"a":' * 20_000, '"\\ud800"', "true", "null"):
        for path in (f"{base}/partitions", f"{base}/messageTTL", f"{base}/retention", f"{base}/publishRate"):
            status, answer = target.http("POST", path, body.encode(), _JSON)
            assert status < 500, f"POST {path} with {body[:20]}…: {status} {answer[:200]!r}"
    return "absurd JSON on four routes"
