"""Messages looked at through REST, and backlogs read through."""

from __future__ import annotations

import time
import urllib.error
import urllib.request

import pulsar  # type: ignore[import-untyped]  # the official client carries no types
from tools.servers.process import HOST

from tests.conformance.answers import Json
from tests.conformance.probe import NAMESPACE, Broker, probe

_PREFIX = "x-pulsar-"


def look(broker: Broker, path: str) -> Json:
    """Status, the bytes as text, and the headers but for the time of publishing."""
    url = f"http://{HOST}:{broker.http_port}/admin/v2/persistent/{NAMESPACE}/{broker.local()}{path}"
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            found = {key.lower(): value for key, value in answer.headers.items()}
            about = {key.removeprefix(_PREFIX): found[key] for key in sorted(found) if key.startswith(_PREFIX)}
            about["message-id"] = about["message-id"].partition(":")[2]
            about.pop("publish-time")
            return {"text": answer.read().decode("latin-1"), **about}
    except urllib.error.HTTPError as refused:
        return refused.code


@probe("11.5.3", "11.5.4")
def stored_messages(broker: Broker) -> Json:
    """Peeked, examined from both ends, by id: payload, headers, and what is not there."""
    client = broker.client()
    client.subscribe(broker.topic(), "s").close()
    said: dict[str, Json] = {"empty": look(broker, "/examinemessage")}
    plain = client.create_producer(
        broker.topic(), producer_name="plain", batching_enabled=False, compression_type=pulsar.CompressionType.LZ4
    )
    first = plain.send(
        b"hello" * 9, properties={"a": "1"}, partition_key="k", event_timestamp=1_000_000, ordering_key="ok"
    )
    plain.send(b"second", deliver_at=4_000_000_000_120)
    for name, kind in (("batch", pulsar.CompressionType.NONE), ("packed", pulsar.CompressionType.ZLib)):
        batched = client.create_producer(
            broker.topic(), producer_name=name, batching_enabled=True, batching_max_publish_delay_ms=500,
            compression_type=kind,
        )  # fmt: skip
        for text in (b"one" * 50, b"two" * 50):
            batched.send_async(text, lambda *_: None, partition_key="z")
        batched.flush()
    ledger = first.ledger_id()
    for path in (
        *(f"/subscription/s/position/{number}" for number in (0, 1, 2, 3, 4, 5)),
        *(f"/examinemessage?initialPosition=earliest&messagePosition={number}" for number in (0, 2, 9)),
        *(f"/examinemessage?initialPosition=latest&messagePosition={number}" for number in (0, 4, 9)),
        "/examinemessage",
    ):
        said[path] = look(broker, path)
    for entry in (0, 9, -1):
        said[f"entry {entry}"] = look(broker, f"/ledger/{ledger}/entry/{entry}")
    said["ledger 999999"] = look(broker, "/ledger/999999/entry/0")
    return said


@probe("11.5.5")
def analyze_backlog(broker: Broker) -> Json:
    """analyzeBacklog from several starts, with an acknowledged message in the middle."""
    client = broker.client()
    consumer = client.subscribe(broker.topic(), "s", pulsar.ConsumerType.Shared)
    said: dict[str, Json] = {"empty": broker.topic_rest("POST", "t", "/subscription/s/analyzeBacklog").body}
    producer = client.create_producer(broker.topic(), batching_enabled=False)
    ids = [producer.send(b"%d" % number) for number in range(4)]
    messages = [consumer.receive(5000) for _ in ids]
    consumer.acknowledge(messages[2])
    time.sleep(0.5)
    starts: dict[str, Json] = {
        "none": None, "earliest": "earliest", "latest": "latest",
        "entry 1": {"ledgerId": ids[1].ledger_id(), "entryId": 1}, "-1": {"ledgerId": -1, "entryId": -1},
    }  # fmt: skip
    for name, start in starts.items():
        found = broker.topic_rest("POST", "t", "/subscription/s/analyzeBacklog", start).body
        for end in ("firstMessageId", "lastMessageId"):
            if isinstance(found, dict) and end in found:
                found[end] = found[end].partition(":")[2]
        said[name] = found
    return said
