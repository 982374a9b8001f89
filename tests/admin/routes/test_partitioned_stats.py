"""How the statistics of partitions become those of their topic (rule 11.4.12)."""

from __future__ import annotations

from magnetar.admin.values.partitioned_stats import PartitionedStats
from magnetar.model.policies import JsonObject


def together(*parts: JsonObject) -> JsonObject:
    stats = PartitionedStats()
    for part in parts:
        stats.add(part)
    return stats.as_json()


def test_the_backlog_begins_with_the_earliest_message_of_all_partitions() -> None:
    """A partition without a backlog (-1) and one that was not asked (0) have no say."""
    name = "earliestMsgPublishTimeInBacklog"
    parts: list[JsonObject] = [
        {f"{name}s": time, "subscriptions": {"s": {name: time}, "t": {name: -1}}} for time in (-1, 2000, 1000, 0)
    ]
    stats = together(*parts)
    assert stats[f"{name}s"] == 1000
    assert stats["subscriptions"] == {"s": {name: 1000, "consumers": []}, "t": {name: 0, "consumers": []}}


def test_partial_producers_are_put_together_by_name_and_others_by_place() -> None:
    def one(name: str, rate: float, size: float, *, partial: bool) -> JsonObject:
        return {
            "producerName": name, "msgRateIn": rate, "averageMsgSize": size, "producerId": 1,
            "supportsPartialProducer": partial, "address": "/127.0.0.1:1",
        }  # fmt: skip

    parts: list[JsonObject] = [
        {"publishers": [one("b", 1, 10, partial=True), one("x", 2, 1, partial=False), one("a", 4, 1, partial=True)]},
        {"publishers": [one("b", 8, 30, partial=True), one("y", 16, 3, partial=False), one("z", 32, 3, partial=False)]},
    ]
    assert together(*parts)["publishers"] == [
        {"msgRateIn": 18, "averageMsgSize": 2, "producerId": 1, "supportsPartialProducer": False},
        {"msgRateIn": 32, "averageMsgSize": 3, "producerId": 1, "supportsPartialProducer": False},
        {"msgRateIn": 4, "averageMsgSize": 1, "producerId": 1, "supportsPartialProducer": True, "producerName": "a"},
        {"msgRateIn": 9, "averageMsgSize": 20, "producerId": 1, "supportsPartialProducer": True, "producerName": "b"},
    ]


def test_the_oldest_backlog_is_named_with_its_subscription() -> None:
    age, name = "oldestBacklogMessageAgeSeconds", "oldestBacklogMessageSubscriptionName"
    stats = together({age: 3, name: "young"}, {age: 70, name: "old"}, {age: -1}, {age: 5, name: "young"})
    assert (stats[age], stats[name]) == (70, "old")


def test_without_any_backlog_its_age_is_0() -> None:
    stats = together({"oldestBacklogMessageAgeSeconds": -1}, {"oldestBacklogMessageAgeSeconds": -1})
    assert stats["oldestBacklogMessageAgeSeconds"] == 0
    assert "oldestBacklogMessageSubscriptionName" not in stats
