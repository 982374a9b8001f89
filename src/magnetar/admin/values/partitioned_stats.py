"""One set of statistics for a partitioned topic, from those of its partitions (rule 11.4.12).

Numbers add up; averages are averaged; the beginning of the backlog is the earliest of all, and its age the greatest.
Other points in time and names of single clients are left out, as in Pulsar.
Publishers and consumers are matched by their place in the lists, subscriptions by name; publishers that are shown as
partial ones are matched by name: they have not opened every partition (`aggregatePublisherStatsByProducerName`).
"""

from __future__ import annotations

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
_NOT_OF_CONSUMERS: Final = frozenset({"appId", "address", "connectedSince", "clientVersion", "metadata"})
_AVERAGED: Final = frozenset({"averageMsgSize"})
_FIRST: Final = frozenset({"producerId", "backlogQuotaLimitSize", "backlogQuotaLimitTime"})
_EARLIEST: Final = frozenset(
    {"earliestMsgPublishTimeInBacklog", "earliestMsgPublishTimeInBacklogs", "topicCreationTimeStamp"}
)
_LATEST: Final = frozenset({"lastPublishTimeStamp"})
"""This one and topicCreationTimeStamp are members of later versions of Pulsar, which are of the whole topic."""
_AGE: Final = "oldestBacklogMessageAgeSeconds"
_AGE_OF: Final = "oldestBacklogMessageSubscriptionName"
_NEVER: Final = "1970-01-01T00:00:00Z"


class PartitionedStats:
    """What the statistics of several partitions are together; takes one after the other, as there may be thousands."""

    def __init__(self) -> None:
        self._topic = _Together()
        self._publishers = _ByPlace()
        self._partial: dict[str, _Together] = {}
        self._subscriptions: dict[str, tuple[_Together, _ByPlace]] = {}
        self._oldest: JsonObject = {}

    def add(self, part: JsonObject) -> None:
        """The topic statistics of one more partition."""
        self._topic.add(part)
        self._note_oldest(part)
        self._add_publishers(part.get("publishers"))
        for name, subscription in _object(part.get("subscriptions")).items():
            known = self._subscriptions.get(name)
            if known is None:
                known = self._subscriptions[name] = _Together(), _ByPlace()
            known[0].add(_object(subscription))
            known[1].add(_object(subscription).get("consumers"))

    def _add_publishers(self, publishers: Json) -> None:
        """Those that are matched by place come first, as in Pulsar's lists."""
        whole: list[Json] = []
        for one in publishers if isinstance(publishers, list) else ():
            name = one.get("producerName") if isinstance(one, dict) and one.get("supportsPartialProducer") else None
            if isinstance(name, str):
                self._partial.setdefault(name, _Together()).add(_object(one))
            else:
                whole.append(one)
        self._publishers.add(whole)

    def _note_oldest(self, part: JsonObject) -> None:
        """Keeps the greatest age of a backlog, together with the subscription whose backlog it is."""
        age, greatest = part.get(_AGE), self._oldest.get(_AGE, 0)
        if isinstance(age, int) and isinstance(greatest, int) and age > greatest:
            self._oldest = {_AGE: age, _AGE_OF: part.get(_AGE_OF)}

    def as_json(self) -> JsonObject:
        """The topic statistics of all partitions together."""
        result = {**self._topic.as_json(), **self._oldest}
        publishers: list[Json] = [_publisher(same.as_json()) for same in self._publishers.places]
        publishers += [
            {**_publisher(same.as_json()), "producerName": name} for name, same in sorted(self._partial.items())
        ]
        result["publishers"] = publishers
        subscriptions: JsonObject = {}
        for name, (subscription, consumers) in self._subscriptions.items():
            shown = subscriptions[name] = subscription.as_json()
            shown["consumers"] = [
                {key: value for key, value in same.items() if key not in _NOT_OF_CONSUMERS}
                for same in consumers.as_json()
            ]
            shown.pop("activeConsumerName", None)
        result["subscriptions"] = subscriptions
        for name in ("ownerBroker", "deduplicationStatus", "topicEpoch"):
            result.pop(name, None)
        return result


class _Together:
    """Objects whose members of one name become one."""

    def __init__(self) -> None:
        self._members: dict[str, _Member] = {}

    def add(self, one: JsonObject) -> None:
        members = self._members
        for key, value in one.items():
            member = members.get(key)
            if member is None:
                member = members[key] = _Member(value)
            member.add(value)

    def as_json(self) -> JsonObject:
        return {key: member.value(key) for key, member in self._members.items()}


class _Member:
    """The values of one name, as far as any rule wants to know them."""

    __slots__ = ("_count", "_first", "_time_max", "_time_min", "_total")

    def __init__(self, first: Json) -> None:
        self._first = first
        self._count = 0
        self._total: int | float = 0
        self._time_min = self._time_max = 0

    def add(self, value: Json) -> None:
        self._count += 1
        if isinstance(value, int | float):
            self._total += value
            if isinstance(value, int) and value > 0:
                self._time_min = min(self._time_min, value) if self._time_min else value
                self._time_max = max(self._time_max, value)

    def value(self, key: str) -> Json:
        """What all of them are together."""
        if key in _EARLIEST:
            return self._time_min
        if key in _LATEST:
            return self._time_max
        if isinstance(self._first, bool):
            return self._total > 0
        if key.endswith(("Timestamp", "TimeStamp", "LedgerId")) or key.startswith(("earliest", "oldest")):
            return 0
        if key.startswith("last") and key.endswith("Time"):
            return _NEVER
        if key in _FIRST or not isinstance(self._first, int | float):
            return self._first
        return self._total / self._count if key in _AVERAGED else self._total


class _ByPlace:
    """Lists of objects; those at the same place become one."""

    def __init__(self) -> None:
        self.places: list[_Together] = []

    def add(self, items: Json) -> None:
        if not isinstance(items, list):
            return
        objects = [item for item in items if isinstance(item, dict)]
        while len(self.places) < len(objects):
            self.places.append(_Together())
        for place, item in zip(self.places, objects, strict=False):
            place.add(item)

    def as_json(self) -> list[JsonObject]:
        return [place.as_json() for place in self.places]


def _publisher(together: JsonObject) -> JsonObject:
    return {key: value for key, value in together.items() if key in _PUBLISHER}


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}
