"""What is stored of a topic and not acknowledged yet, in the shape of Apache Pulsar's estimate of an offline backlog.

Cursors have no ledgers of their own here, hence the -1.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from magnetar.broker.topic.topic import Topic
from magnetar.model.names import TopicName
from magnetar.model.policies import Json, JsonObject


async def offline_backlog(name: TopicName, parts: AsyncIterator[Topic], broker: str, now_ms: int) -> JsonObject:
    """The answer to ``GET .../backlog``: the numbers of one topic, or of all partitions together."""
    ledgers: list[Json] = []
    stored = messages = 0
    behind: dict[str, int] = {}
    async for part in parts:
        for one in part.log.table.ledgers:
            stored, messages = stored + one.bytes, messages + one.entries
            ledgers.append({"entries": one.entries, "timestamp": one.closed_ms, "size": one.bytes, "ledgerId": one.id})
        for cursor in part.subscriptions.cursors():
            behind[cursor.name] = behind.get(cursor.name, 0) + cursor.backlog()
    return {
        "storageSize": stored,
        "totalMessages": messages,
        "messageBacklog": sum(behind.values()),
        "brokerName": broker,
        "topicName": f"{name.namespace.text}/{name.rest_path.replace(f'/{name.namespace.text}', '', 1)}",
        "dataLedgerDetails": ledgers,
        "cursorDetails": {text: {"cursorBacklog": count, "cursorLedgerId": -1} for text, count in behind.items()},
        "statGeneratedAt": now_ms,
    }
