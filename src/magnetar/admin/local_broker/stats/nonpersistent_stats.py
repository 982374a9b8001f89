"""Statistics of a non-persistent topic in the shape of Apache Pulsar 4.0.8 (rule 13.8).

The members are those of a persistent topic, with 0 for all that has to do with storage, and ``msgDropRate``: for a
subscription the messages that no consumer could take, for a publisher those that were refused when they arrived, for
the topic the sum of its publishers.
"""

from __future__ import annotations

from magnetar.admin.local_broker.stats.client_counters import consumer_counters, producer_counters
from magnetar.admin.local_broker.stats.subscription_stats import (
    NEVER_COUNTED,
    SUBSCRIPTIONS_PER_TURN,
    consumer_shown,
    delivered,
    throttled_shown,
)
from magnetar.admin.local_broker.stats.topic_stats import (
    average,
    epoch_shown,
    publisher_shown,
)
from magnetar.admin.ports import StatsOptions
from magnetar.admin.values.counters import CounterOptions, SubscriptionCounters, TopicCounters
from magnetar.broker.topic.nonpersistent.nonpersistent_subscription import NonPersistentSubscription
from magnetar.broker.topic.nonpersistent.nonpersistent_topic import NonPersistentTopic
from magnetar.broker.upkeep.rates import Rates
from magnetar.model.policies import Json, JsonObject
from magnetar.runtime.tasks import in_turns


async def nonpersistent_topic_stats(
    topic: NonPersistentTopic, rates: Rates, options: StatsOptions, broker_id: str
) -> JsonObject:
    """The answer to ``GET .../stats``."""
    subscriptions: JsonObject = {}
    async for name, subscription in in_turns(list(topic.subscriptions.items()), SUBSCRIPTIONS_PER_TURN):
        subscriptions[name] = _subscription(subscription, rates, options)
    rate, sent = rates.of(topic), topic.sent()
    publishers: list[Json] = []
    if not options.exclude_publishers:
        publishers = [
            {**publisher_shown(producer, rates), "msgDropRate": rates.of(producer).dropped}
            for producer in topic.producers
        ]
    return {
        "msgRateIn": rate.messages_in,
        "msgThroughputIn": rate.bytes_in,
        "msgRateOut": rate.messages_out,
        "msgThroughputOut": rate.bytes_out,
        "bytesInCounter": topic.bytes_in,
        "msgInCounter": topic.msg_in,
        "bytesOutCounter": sent.bytes,
        "msgOutCounter": sent.messages,
        "averageMsgSize": average(rate.bytes_in, rate.messages_in),
        "msgChunkPublished": False,
        **dict.fromkeys(_ALWAYS_0, 0),
        "waitingPublishers": topic.producers.waiting,
        **epoch_shown(topic.producers),
        "compaction": {
            "lastCompactionRemovedEventCount": 0,
            "lastCompactionSucceedTimestamp": 0,
            "lastCompactionFailedTimestamp": 0,
            "lastCompactionDurationTimeInMills": 0,
        },
        "ownerBroker": broker_id,
        "msgDropRate": sum((rates.of(producer).dropped for producer in topic.producers), 0.0),
        "publishers": publishers,
        "subscriptions": subscriptions,
        "replication": {},
    }


_ALWAYS_0 = (
    "systemTopicBytesInCounter",
    "bytesOutInternalCounter",
    "storageSize",
    "backlogSize",
    "backlogQuotaLimitSize",
    "backlogQuotaLimitTime",
    "oldestBacklogMessageAgeSeconds",
    "publishRateLimitedTimes",
    "earliestMsgPublishTimeInBacklogs",
    "offloadedStorageSize",
    "lastOffloadLedgerId",
    "lastOffloadSuccessTimeStamp",
    "lastOffloadFailureTimeStamp",
    "ongoingTxnCount",
    "abortedTxnCount",
    "committedTxnCount",
    "nonContiguousDeletedMessagesRanges",
    "nonContiguousDeletedMessagesRangesSerializedSize",
    "delayedMessageIndexSizeInBytes",
)


def _subscription(subscription: NonPersistentSubscription, rates: Rates, options: StatsOptions) -> JsonObject:
    stats, rate = subscription.stats(), rates.of(subscription)
    shown: list[Json] = []
    if not options.exclude_consumers:
        shown = [
            consumer_shown(each, rates.of(consumer), key_shared=False)
            for each, consumer in zip(stats.consumers, subscription.consumers, strict=True)
        ]
    return {
        **delivered(rate, stats),
        **dict.fromkeys(_SUBSCRIPTION_ALWAYS_0, 0),
        "blockedSubscriptionOnUnackedMsgs": False,
        "type": stats.type,
        "msgRateExpired": 0.0,
        "consumers": shown,
        "isDurable": False,
        "isReplicated": False,
        "allowOutOfOrderDelivery": False,
        "consumersAfterMarkDeletePosition": {},
        "subscriptionProperties": {**subscription.properties},
        **dict.fromkeys(NEVER_COUNTED, 0),
        **throttled_shown(None),
        "msgDropRate": rate.dropped,
        "durable": False,
        "replicated": False,
    }


_SUBSCRIPTION_ALWAYS_0 = (
    "msgBacklog",
    "backlogSize",
    "earliestMsgPublishTimeInBacklog",
    "msgBacklogNoDelayed",
    "msgDelayed",
    "msgInReplay",
    "unackedMessages",
    "totalMsgExpired",
    "lastExpireTimestamp",
    "lastConsumedFlowTimestamp",
    "lastConsumedTimestamp",
    "lastAckedTimestamp",
    "lastMarkDeleteAdvancedTimestamp",
    "drainingHashesCount",
    "drainingHashesClearedTotal",
    "drainingHashesUnackedMessages",
    "nonContiguousDeletedMessagesRanges",
    "nonContiguousDeletedMessagesRangesSerializedSize",
    "delayedMessageIndexSizeInBytes",
)


def nonpersistent_internal_stats(topic: NonPersistentTopic) -> JsonObject:
    """The answer to ``GET .../internalStats``: the entries that have passed, and nothing else."""
    cursor: JsonObject = {
        "waitingReadOp": False,
        "pendingReadOps": 0,
        "messagesConsumedCounter": 0,
        "cursorLedger": 0,
        "cursorLedgerLastEntry": 0,
        "active": False,
        "numberOfEntriesSinceFirstNotAckedMessage": 0,
        "totalNonContiguousDeletedMessagesRange": 0,
        "subscriptionHavePendingRead": False,
        "subscriptionHavePendingReplayRead": False,
    }
    return {
        "entriesAddedCounter": topic.entries_in,
        "numberOfEntries": 0,
        "totalSize": 0,
        "currentLedgerEntries": 0,
        "currentLedgerSize": 0,
        "waitingCursorsCount": 0,
        "pendingAddEntriesCount": 0,
        "cursors": {name: dict(cursor) for name in topic.subscriptions},
    }


async def nonpersistent_counters(
    topic: NonPersistentTopic, rates: Rates, options: CounterOptions
) -> TopicCounters | None:
    """The numbers that /metrics shows; see :func:`topic_counters`."""
    in_steps = in_turns(list(topic.subscriptions.values()), SUBSCRIPTIONS_PER_TURN)
    subscriptions = [_subscription_counters(subscription, rates, options) async for subscription in in_steps]
    if topic.closed:
        return None
    rate, sent = rates.of(topic), topic.sent()
    return TopicCounters(
        topic=topic.name,
        producers=len(topic.producers),
        consumers=sum([counted.consumers for counted in subscriptions]),
        messages_in=topic.msg_in,
        bytes_in=topic.bytes_in,
        rate_in=rate.messages_in,
        rate_out=rate.messages_out,
        throughput_in=rate.bytes_in,
        throughput_out=rate.bytes_out,
        backlog=0,
        backlog_bytes=0,
        storage_bytes=0,
        subscriptions=subscriptions,
        clients=producer_counters(topic, rates) if options.producers else (),
        messages_out=sent.messages,
        bytes_out=sent.bytes,
        publish_limited=0 if topic.checks.limit is None else topic.checks.limit.times,
    )


def _subscription_counters(
    subscription: NonPersistentSubscription, rates: Rates, options: CounterOptions
) -> SubscriptionCounters:
    counted, rate = subscription.counters(), rates.of(subscription)
    return SubscriptionCounters(
        name=subscription.name,
        consumers=len(subscription.consumers),
        backlog=0,
        backlog_due=0,
        unacked=0,
        messages_out=counted.messages_out,
        bytes_out=counted.bytes_out,
        rate_out=rate.messages_out,
        throughput_out=rate.bytes_out,
        rate_redelivered=0.0,
        rate_acked=0.0,
        rate_dropped=rate.dropped,
        last_flow_ms=counted.last_flow_ms,
        last_sent_ms=counted.last_sent_ms,
        clients=consumer_counters(subscription, rates) if options.consumers else (),
    )
