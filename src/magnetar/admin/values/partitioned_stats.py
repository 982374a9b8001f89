"""One set of statistics for a partitioned topic, from those of its partitions (rule 11.4.12).

Numbers add up; averages are averaged; points in time and names of single clients are left out, as in Pulsar.
Publishers and consumers are matched by their place in the lists, subscriptions by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from magnetar.model.policies import Json, JsonObject

_PUBLISHER: Final = (
    "msgRateIn",
    "msgThroughputIn",
    "averageMsgSize",
    "chunkedMessageRate",
    "producerId",
    "supportsPartialProducer",
)
_NOT_OF_CONSUMERS: Final = frozenset({"address", "connectedSince", "clientVersion", "metadata"})
_AVERAGED: Final = frozenset({"averageMsgSize"})
_FIRST: Final = frozenset({"producerId", "backlogQuotaLimitSize", "backlogQuotaLimitTime"})
_TIMES: Final[Mapping[str, Callable[[Sequence[int]], int]]] = {
    "topicCreationTimeStamp": min, "lastPublishTimeStamp": max,
}  # fmt: skip
"""Members of later versions of Pulsar, which are of the whole topic."""
_NEVER: Final = "1970-01-01T00:00:00Z"


def aggregate(parts: Sequence[JsonObject]) -> JsonObject:
    """Return the topic statistics of all ``parts`` together."""
    result = _merged(parts)
    result["publishers"] = [
        {key: value for key, value in _merged(same).items() if key in _PUBLISHER}
        for same in _by_place([_objects(part.get("publishers")) for part in parts])
    ]
    names = dict.fromkeys(name for part in parts for name in _object(part.get("subscriptions")))
    result["subscriptions"] = {
        name: _subscription([_object(subs[name]) for part in parts if name in (subs := _object(part["subscriptions"]))])
        for name in names
    }
    for name in ("ownerBroker", "deduplicationStatus", "topicEpoch"):
        result.pop(name, None)
    return result


def _subscription(parts: Sequence[JsonObject]) -> JsonObject:
    result = _merged(parts)
    result["consumers"] = [
        {key: value for key, value in _merged(same).items() if key not in _NOT_OF_CONSUMERS}
        for same in _by_place([_objects(part.get("consumers")) for part in parts])
    ]
    result.pop("activeConsumerName", None)
    return result


def _merged(parts: Sequence[JsonObject]) -> JsonObject:
    keys = dict.fromkeys(key for part in parts for key in part)
    return {key: _value(key, [part[key] for part in parts if key in part]) for key in keys}


def _value(key: str, values: Sequence[Json]) -> Json:
    first = values[0]
    if key in _TIMES:
        times = [value for value in values if isinstance(value, int) and value > 0]
        return _TIMES[key](times) if times else 0
    if isinstance(first, bool):
        return any(values)
    if key.endswith(("Timestamp", "TimeStamp")) or key.startswith(("earliest", "oldest")):
        return 0
    if key.startswith("last") and key.endswith("Time"):
        return _NEVER
    if key in _FIRST or not isinstance(first, int | float):
        return first
    total = sum(value for value in values if isinstance(value, int | float))
    return total / len(values) if key in _AVERAGED else total


def _by_place(lists: Sequence[Sequence[JsonObject]]) -> list[list[JsonObject]]:
    longest = max(map(len, lists), default=0)
    return [[items[place] for items in lists if place < len(items)] for place in range(longest)]


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _objects(value: Json) -> list[JsonObject]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
