"""Statistics of all loaded topics in the shape of Apache Pulsar's older JSON, streamed one topic after the other."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Final

from magnetar.admin.ports import StatisticsPort, StatsOptions
from magnetar.model.errors import MagnetarError
from magnetar.model.names import TopicName
from magnetar.model.policies import Json, JsonObject

_RATES: Final = ("msgRateIn", "msgRateOut", "msgThroughputIn", "msgThroughputOut", "averageMsgSize")
_PUBLISHER: Final = (
    "msgRateIn", "msgThroughputIn", "averageMsgSize", "address", "producerId", "producerName", "connectedSince",
    "clientVersion", "metadata",
)  # fmt: skip
_SUBSCRIPTION: Final = (
    "msgBacklog", "msgRateExpired", "msgRateOut", "messageAckRate", "msgThroughputOut", "msgRateRedeliver", "type",
    "filterProcessedMsgCount", "filterAcceptedMsgCount", "filterRejectedMsgCount", "filterRescheduledMsgCount",
)  # fmt: skip
_UNACKNOWLEDGED: Final = ("blockedSubscriptionOnUnackedMsgs", "unackedMessages")
_CONSUMER: Final = (
    "address", "consumerName", "availablePermits", "connectedSince", "msgRateOut", "msgThroughputOut",
    "msgRateRedeliver", "avgMessagesPerEntry", "messageAckRate", "clientVersion", "metadata",
)  # fmt: skip
_CONSUMER_UNACKNOWLEDGED: Final = ("unackedMessages", "blockedConsumerOnUnackedMsgs")
_SUBSCRIPTIONS_PER_PIECE: Final = 50
_OF_LOG: Final = ("storageSize", "backlogSize", "pendingAddEntriesCount")


async def topics_json(
    names: Sequence[TopicName], bundle_of: Callable[[TopicName], str], statistics: StatisticsPort, *, publishers: bool
) -> AsyncIterator[str]:
    """The object of namespaces of bundles of domains of topics, in pieces; a topic that has gone meanwhile is left
    out."""
    options = StatsOptions(exclude_publishers=not publishers, log_members=True)
    places = sorted((name.namespace.text, bundle_of(name), name.domain, name.fqn, name) for name in names)
    here: tuple[str, str, str] | None = None
    yield "{"
    for namespace, bundle, domain, fqn, name in places:
        try:
            stats = await statistics.topic_stats(name, options)
        except MagnetarError:
            continue
        yield _between(here, (namespace, bundle, domain)) + f"{json.dumps(fqn)}:"
        for piece in _topic(name, stats):
            yield piece
            await asyncio.sleep(0)
        here = (namespace, bundle, domain)
    yield "}" if here is None else "}}}}"


def _between(before: tuple[str, str, str] | None, now: tuple[str, str, str]) -> str:
    """What closes the last place and opens this one."""
    if before == now:
        return ","
    if before is None:
        same = 0
        text = ""
    else:
        same = next(i for i in range(3) if before[i] != now[i])
        text = "}" * (3 - same) + ","
    return text + "".join(f"{json.dumps(word)}:{{" for word in now[same:])


def _topic(name: TopicName, stats: JsonObject) -> Iterator[str]:
    """One topic's object, in pieces of so many subscriptions."""
    publishers, subscriptions = stats.get("publishers"), stats.get("subscriptions")
    shown_publishers: list[Json] = [_chosen(one, _PUBLISHER) for one in _objects(publishers)]
    text = f'{{"publishers":{json.dumps(shown_publishers)},"replication":{{}},"subscriptions":{{'
    if isinstance(subscriptions, dict):
        for number, (word, one) in enumerate(subscriptions.items()):
            if number and number % _SUBSCRIPTIONS_PER_PIECE == 0:
                yield text
                text = ""
            text += f"{',' if number else ''}{json.dumps(word)}:{json.dumps(_subscription(one, name))}"
    rest: JsonObject = {
        "producerCount": len(shown_publishers),
        **{word: stats[word] for word in _RATES},
        "msgInCount": stats["msgInCounter"],
        "bytesInCount": stats["bytesInCounter"],
        "msgOutCount": stats["msgOutCounter"],
        "bytesOutCount": stats["bytesOutCounter"],
        **({word: stats[word] for word in _OF_LOG} if name.persistent else {}),
        "filteredEntriesCount": 0,
    }
    yield text + "}," + json.dumps(rest)[1:]


def _subscription(found: Json, name: TopicName) -> JsonObject:
    shared = isinstance(found, dict) and found.get("type") in ("Shared", "Key_Shared")
    consumers = found.get("consumers") if isinstance(found, dict) else None
    own = _CONSUMER + (_CONSUMER_UNACKNOWLEDGED if shared else ())
    shown: list[Json] = [_chosen(one, own) for one in _objects(consumers)]
    if not name.persistent:
        return {"consumers": shown, **_chosen(found, (*_SUBSCRIPTION, "msgDropRate"))}
    words = _SUBSCRIPTION + (_UNACKNOWLEDGED if shared else ())
    return {"consumers": shown, **_chosen(found, words), **_cursor(found)}


def _cursor(found: Json) -> JsonObject:
    """How far a subscription has read beyond what it acknowledged, and in how many pieces."""
    if not isinstance(found, dict):
        return {}
    word = "numberOfEntriesSinceFirstNotAckedMessage"
    return {word: found[word], "totalNonContiguousDeletedMessagesRange": found["nonContiguousDeletedMessagesRanges"]}


def _objects(found: Json) -> list[Json]:
    return list(found) if isinstance(found, list) else []


def _chosen(found: Json, words: Sequence[str]) -> JsonObject:
    return {word: found[word] for word in words if word in found} if isinstance(found, dict) else {}
