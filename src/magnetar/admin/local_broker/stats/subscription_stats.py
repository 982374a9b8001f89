"""Statistics of subscriptions and consumers in the shape of Apache Pulsar 4.0.8 (rules of 5.10)."""

from __future__ import annotations

import datetime
from typing import Final

from magnetar.admin.local_broker.entries import publish_time_at
from magnetar.admin.ports import StatsOptions
from magnetar.broker.throttling.rate_limit import LimitLevel
from magnetar.broker.topic.dispatch.dispatch_throttle import DispatchThrottle
from magnetar.broker.topic.subscription.backlog import bytes_behind
from magnetar.broker.topic.subscription.subscription import Subscription
from magnetar.broker.topic.subscription.subscription_stats import ConsumerStats, SubscriptionStats
from magnetar.broker.topic.throughput import Throughput
from magnetar.broker.upkeep.rates import Rates
from magnetar.model.own_properties import OF_SUBSCRIPTIONS, is_replicated
from magnetar.model.policies import Json, JsonObject
from magnetar.storage.ledgers.managed_ledger import ManagedLedger

SUBSCRIPTIONS_PER_TURN: Final = 50
"""Statistics of so many are made before others have a turn: a topic may have ten thousand readers."""
_RANGE_BYTES: Final = 16
"""What a range of acknowledged entries takes in the record of a cursor: two ordinals."""


async def subscription_stats(
    subscription: Subscription, log: ManagedLedger, rates: Rates, options: StatsOptions
) -> JsonObject:
    """One member of ``subscriptions`` in the answer to ``GET .../stats``."""
    stats = subscription.stats()
    consumers = subscription.consumers
    replicated = is_replicated(subscription.cursor.properties)
    backlog = bytes_behind(log, stats.mark_delete) if options.subscription_backlog_size else -1
    shown: list[Json] = []
    if not options.exclude_consumers:
        shown = [
            consumer_shown(each, rates.of(consumer), key_shared=stats.type == "Key_Shared")
            for each, consumer in zip(stats.consumers, consumers, strict=True)
        ]
    stretches = subscription.cursor.acknowledged_stretches
    earliest = 0
    if options.earliest_time_in_backlog:
        first = subscription.cursor.next_unacknowledged(stats.mark_delete + 1)
        earliest = await publish_time_at(log, first) if stats.backlog_entries and first < log.end else -1
    return {
        **delivered(rates.of(subscription), stats),
        "msgBacklog": stats.backlog_entries,
        "backlogSize": backlog,
        "earliestMsgPublishTimeInBacklog": earliest,
        "msgBacklogNoDelayed": stats.backlog_entries - stats.delayed_entries,
        "blockedSubscriptionOnUnackedMsgs": stats.blocked_on_unacked,
        "msgDelayed": stats.delayed_entries,
        "msgInReplay": stats.in_replay,
        "unackedMessages": stats.unacked_messages,
        "type": stats.type,
        **({"activeConsumerName": stats.active_consumer_name} if stats.active_consumer_name else {}),
        "msgRateExpired": rates.of(subscription).expired,
        "totalMsgExpired": stats.expired,
        "lastExpireTimestamp": stats.last_expired_ms,
        "lastConsumedFlowTimestamp": stats.last_flow_ms,
        "lastConsumedTimestamp": stats.last_sent_ms,
        "lastAckedTimestamp": stats.last_acked_ms,
        "lastMarkDeleteAdvancedTimestamp": stats.last_mark_delete_advanced_ms,
        "consumers": shown,
        "isDurable": stats.is_durable,
        "isReplicated": replicated,
        **({"entriesLostToTrimming": stats.jumped} if stats.jumped else {}),
        "allowOutOfOrderDelivery": stats.allow_out_of_order,
        **({"keySharedMode": stats.key_shared_mode} if stats.key_shared_mode else {}),
        "consumersAfterMarkDeletePosition": {},
        **_draining(stats.consumers),
        "nonContiguousDeletedMessagesRanges": stretches,
        "nonContiguousDeletedMessagesRangesSerializedSize": stretches * _RANGE_BYTES if stats.is_durable else 0,
        "delayedMessageIndexSizeInBytes": 0,
        "subscriptionProperties": {
            name: value
            for name, value in subscription.cursor.properties.items()
            if not name.startswith(OF_SUBSCRIPTIONS)
        },
        **dict.fromkeys(NEVER_COUNTED, 0),
        **throttled_shown(subscription),
        "durable": stats.is_durable,
        "replicated": replicated,
        **(_of_log(stats) if options.log_members else {}),
    }


def _of_log(stats: SubscriptionStats) -> JsonObject:
    """How far it has read beyond what it acknowledged, counted as Pulsar does: one more than there are entries."""
    return {"numberOfEntriesSinceFirstNotAckedMessage": stats.read_at - stats.mark_delete}


NEVER_COUNTED = (
    "filterProcessedMsgCount",
    "filterAcceptedMsgCount",
    "filterRejectedMsgCount",
    "filterRescheduledMsgCount",
)
"""Members about entry filters, which do not exist here."""


def throttled_shown(subscription: Subscription | None) -> JsonObject:
    """How often a limit of rates held up a subscription; what a resource group held up counts as the broker's."""
    counted = throttled(None if subscription is None else subscription.pump.throttle)
    return {
        f"dispatchThrottled{measure}EventsBy{reason.capitalize()}Limit": number
        for reason, *numbers in counted
        for measure, number in zip(("Msg", "Bytes"), numbers, strict=True)
    }


def throttled(throttle: DispatchThrottle | None) -> list[tuple[str, int, int]]:
    """Count by reason how often limits of messages and of bytes held up a subscription."""
    times = {} if throttle is None else throttle.times

    def held_up(levels: tuple[LimitLevel, ...], *, by_bytes: bool) -> int:
        return sum([times.get((level, by_bytes), 0) for level in levels])

    return [
        (reason, held_up(levels, by_bytes=False), held_up(levels, by_bytes=True)) for reason, levels in _LEVELS.items()
    ]


_LEVELS: Final = {
    "subscription": (LimitLevel.SUBSCRIPTION,),
    "topic": (LimitLevel.TOPIC,),
    "broker": (LimitLevel.BROKER, LimitLevel.RESOURCE_GROUP),
}


def delivered(rate: Throughput, counted: SubscriptionStats | ConsumerStats) -> JsonObject:
    """Rates and counters of outgoing messages of a subscription or a consumer."""
    return {
        "msgRateOut": rate.messages_out,
        "msgThroughputOut": rate.bytes_out,
        "bytesOutCounter": counted.bytes_out,
        "msgOutCounter": counted.messages_out,
        "msgRateRedeliver": rate.redelivered,
        "messageAckRate": rate.acked,
        "chunkedMessageRate": rate.chunks,
    }


def consumer_shown(stats: ConsumerStats, rate: Throughput, *, key_shared: bool) -> JsonObject:
    """One member of ``consumers`` in the answer to ``GET .../stats``."""
    of_keys: JsonObject = {}
    draining: JsonObject = {}
    role = stats.info.get("role")
    if key_shared:
        of_keys["keyHashRangeArrays"] = [[low, high] for low, high in stats.key_hash_ranges]
        draining["drainingHashes"] = [
            {"hash": one.slot, "unackMsgs": one.unacked, "blockedAttempts": one.blocked_attempts}
            for one in stats.draining_hashes
        ]
    return {
        **({} if role is None else {"appId": role}),
        **delivered(rate, stats),
        "consumerName": stats.name,
        "availablePermits": stats.available_permits,
        "unackedMessages": stats.unacked_messages,
        "avgMessagesPerEntry": stats.average_messages_per_entry,
        "blockedConsumerOnUnackedMsgs": stats.blocked_on_unacked,
        **_draining([stats]),
        **draining,
        "address": stats.info["address"],
        "connectedSince": stats.info["connectedSince"],
        "clientVersion": stats.info["clientVersion"],
        "lastAckedTimestamp": stats.last_acked_ms,
        "lastConsumedTimestamp": stats.last_sent_ms,
        "lastConsumedFlowTimestamp": stats.last_flow_ms,
        **of_keys,
        "metadata": stats.info["metadata"],
        "lastAckedTime": _instant(stats.last_acked_ms),
        "lastConsumedTime": _instant(stats.last_sent_ms),
    }


def _draining(consumers: list[ConsumerStats]) -> JsonObject:
    hashes = [one for consumer in consumers for one in consumer.draining_hashes]
    return {
        "drainingHashesCount": len(hashes),
        "drainingHashesClearedTotal": sum(consumer.draining_hashes_cleared_total for consumer in consumers),
        "drainingHashesUnackedMessages": sum(one.unacked for one in hashes),
    }


def _instant(ms: int) -> str:
    at = datetime.datetime.fromtimestamp(ms / 1000, datetime.UTC)
    return at.isoformat(timespec="milliseconds" if ms % 1000 else "seconds").replace("+00:00", "Z")
