"""Everything that a user sees of a broker's data: topics, positions, backlogs, policies, schemas, messages.

Asked over REST and with the official client only, so that brokers of every version are asked in the same way.
"""

from __future__ import annotations

import json
import urllib.request
from typing import Any, Final

import pulsar  # type: ignore[import-untyped]  # publishes no types

NAMESPACE: Final = "public/default"
_QUIET_MS: Final = 700
_CURSOR: Final = ("markDeletePosition", "individuallyDeletedMessages", "properties")

Json = Any


def broker_contents(service: str, web: str) -> dict[str, Json]:
    """What the broker at these two addresses holds of the namespace; acknowledges nothing."""
    topics: list[str] = sorted(_get(f"{web}/admin/v2/persistent/{NAMESPACE}"))
    return {
        "policies": _get(f"{web}/admin/v2/namespaces/{NAMESPACE}"),
        "topics": {topic: _topic(web, topic.removeprefix("persistent://")) for topic in topics},
        "messages": _messages(service, topics),
    }


def _topic(web: str, path: str) -> dict[str, Json]:
    base = f"{web}/admin/v2/persistent/{path}"
    stats, internal = _get(f"{base}/stats"), _get(f"{base}/internalStats")
    schema = _get(f"{web}/admin/v2/schemas/{path}/schema")
    return {
        "entries": internal["numberOfEntries"],
        "ledgers": [[one["ledgerId"], one["entries"]] for one in internal["ledgers"] if one["entries"]],
        "cursors": {
            name: {field: cursor[field] for field in _CURSOR} for name, cursor in sorted(internal["cursors"].items())
        },
        "backlog": {name: sub["msgBacklog"] for name, sub in sorted(stats["subscriptions"].items())},
        "retention": _get(f"{base}/retention"),
        "schema": schema and {"type": schema["type"], "data": schema["data"]},
        "compacted": _get(f"{base}/compaction") and _get(f"{base}/compaction").get("status"),
    }


def _messages(service: str, topics: list[str]) -> dict[str, Json]:
    client = pulsar.Client(service)
    try:
        return {
            topic: {
                "all": _read(client, topic, compacted=False),
                "compacted": _read(client, topic, compacted=True),
                "pending": {name: _pending(client, topic, name) for name in ("some", "delayed", "transacted")},
            }
            for topic in topics
        }
    finally:
        client.close()


def _read(client: pulsar.Client, topic: str, *, compacted: bool) -> list[Json]:
    reader = client.create_reader(topic, pulsar.MessageId.earliest, is_read_compacted=compacted)
    found = []
    while reader.has_message_available():
        found.append(_message(reader.read_next(timeout_millis=5000)))
    reader.close()
    return found


def _pending(client: pulsar.Client, topic: str, subscription: str) -> list[Json] | None:
    """What a subscription still has to deliver at once, if the topic's name says that it has that subscription."""
    if subscription not in topic:
        return None
    consumer = client.subscribe(topic, subscription, pulsar.ConsumerType.Shared)
    found = []
    try:
        while True:
            found.append(_message(consumer.receive(timeout_millis=_QUIET_MS)))
    except pulsar.Timeout:
        pass
    consumer.close()
    return sorted(found)


def _message(message: pulsar.Message) -> Json:
    where = message.message_id()
    return [
        [where.ledger_id(), where.entry_id(), where.batch_index()], message.partition_key(), message.data().decode(),
        dict(sorted(message.properties().items())),
    ]  # fmt: skip


def _get(url: str) -> Json:
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            text = answer.read()
    except urllib.error.HTTPError as error:
        return None if error.code == 404 else {"error": error.code}
    return json.loads(text) if text else None
