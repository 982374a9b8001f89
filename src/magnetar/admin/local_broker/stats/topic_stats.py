"""Statistics of one topic in the shape of Apache Pulsar 4.0.8 (rules 11.4.10, 11.4.11).

Counters are as of now, rates as of the last period (:mod:`magnetar.broker.upkeep.rates`). Members that
Pulsar leaves out because they are null are left out; members of features that are not built have the value that Pulsar
shows for a feature that is not used.
"""

from __future__ import annotations

from magnetar.admin.local_broker.entries import publish_time_at
from magnetar.admin.local_broker.stats.subscription_stats import SUBSCRIPTIONS_PER_TURN, subscription_stats
from magnetar.admin.ports import StatsOptions
from magnetar.broker.topic.compaction.compaction_stats import CompactionStats
from magnetar.broker.topic.publish.producer import Producer
from magnetar.broker.topic.publish.producers import Producers
from magnetar.broker.topic.subscription.backlog import bytes_behind
from magnetar.broker.topic.topic import Topic
from magnetar.broker.upkeep.rates import Rates
from magnetar.model.policies import Json, JsonObject
from magnetar.runtime.tasks import in_turns


async def topic_stats(topic: Topic, rates: Rates, options: StatsOptions, broker_id: str) -> JsonObject:
    """The answer to ``GET .../stats``."""
    publishers: list[Json] = [] if options.exclude_publishers else [publisher_shown(p, rates) for p in topic.producers]
    # before anything is read: the topic may be unloaded meanwhile
    slowest = topic.slowest()
    subscriptions: JsonObject = {}
    async for subscription in in_turns(topic.subscriptions.each(), SUBSCRIPTIONS_PER_TURN):
        subscriptions[subscription.name] = await subscription_stats(subscription, topic.log, rates, options)
    holes = {
        name: sum(_integer(s, name) for s in subscriptions.values())
        for name in ("nonContiguousDeletedMessagesRanges", "nonContiguousDeletedMessagesRangesSerializedSize")
    }
    return {
        **_counters(topic, rates),
        **await _backlog(topic, slowest, options),
        **_offloaded(topic),
        **_transactions(topic),
        "publishers": publishers,
        "waitingPublishers": topic.producers.waiting,
        "subscriptions": subscriptions,
        "replication": {},
        "deduplicationStatus": "Disabled" if topic.checks.deduplication is None else "Enabled",
        **epoch_shown(topic.producers),
        **holes,
        "delayedMessageIndexSizeInBytes": topic.delays.memory_bytes,
        "compaction": _compaction(topic),
        "ownerBroker": broker_id,
        **await _times(topic),
        **({"pendingAddEntriesCount": topic.log.pending} if options.log_members else {}),
    }


def _offloaded(topic: Topic) -> JsonObject:
    """What lies in the object store, and which copy was recorded last."""
    copies = [(ledger, ledger.offload) for ledger in topic.log.table.ledgers if ledger.offload is not None]
    newest, ledger_id = max(((copy.recorded_ms, ledger.id) for ledger, copy in copies), default=(0, 0))
    return {
        "offloadedStorageSize": sum([ledger.bytes for ledger, _ in copies]),
        "lastOffloadLedgerId": ledger_id,
        "lastOffloadSuccessTimeStamp": newest,
        "lastOffloadFailureTimeStamp": 0,
    }


async def _times(topic: Topic) -> JsonObject:
    """When the topic was made and last published to, as far as what is retained shows (members of Pulsar 4.1)."""
    log = topic.log
    return {
        "topicCreationTimeStamp": log.table.ledgers[0].opened_ms,
        "lastPublishTimeStamp": await publish_time_at(log, log.end - 1) if log.end > log.first else 0,
    }


def _transactions(topic: Topic) -> JsonObject:
    """Transactions that sent to this topic: open ones, and those ended since it was loaded (rule 9.18)."""
    buffer = None if topic.transactions is None else topic.transactions.buffer
    return {
        "ongoingTxnCount": 0 if buffer is None else len(buffer.open),
        "abortedTxnCount": 0 if buffer is None else buffer.aborted,
        "committedTxnCount": 0 if buffer is None else buffer.committed,
    }


def _compaction(topic: Topic) -> JsonObject:
    stats = CompactionStats() if topic.compactor is None else topic.compactor.stats
    return {
        "lastCompactionRemovedEventCount": stats.removed,
        "lastCompactionSucceedTimestamp": stats.succeeded_ms,
        "lastCompactionFailedTimestamp": stats.failed_ms,
        "lastCompactionDurationTimeInMills": stats.duration_ms,
    }


def _counters(topic: Topic, rates: Rates) -> JsonObject:
    rate, sent = rates.of(topic), topic.sent()
    return {
        "msgRateIn": rate.messages_in,
        "msgThroughputIn": rate.bytes_in,
        "msgRateOut": rate.messages_out,
        "msgThroughputOut": rate.bytes_out,
        "bytesInCounter": topic.bytes_in,
        "msgInCounter": topic.msg_in,
        "systemTopicBytesInCounter": 0,
        "bytesOutCounter": sent.bytes,
        "msgOutCounter": sent.messages,
        "bytesOutInternalCounter": 0,
        "averageMsgSize": average(rate.bytes_in, rate.messages_in),
        "msgChunkPublished": topic.chunking.published > 0,
        "storageSize": topic.log.retained_bytes(),
    }


async def _backlog(topic: Topic, slowest: int, options: StatsOptions) -> JsonObject:
    log = topic.log
    size = bytes_behind(log, slowest)
    earliest = 0
    if options.earliest_time_in_backlog and slowest + 1 < log.end:
        earliest = await publish_time_at(log, slowest + 1)
    return {
        "backlogSize": size,
        "backlogQuotaLimitSize": topic.policies.size_quota.limit,
        "backlogQuotaLimitTime": topic.policies.age_quota.limit,
        **_oldest(topic),
        "publishRateLimitedTimes": 0 if topic.checks.limit is None else topic.checks.limit.times,
        "earliestMsgPublishTimeInBacklogs": earliest,
    }


def epoch_shown(producers: Producers) -> JsonObject:
    """The topic epoch; it is left out before the first exclusive producer (rule 3.2.8)."""
    epoch = producers.epoch.current
    return {} if epoch is None else {"topicEpoch": epoch}


def _oldest(topic: Topic) -> JsonObject:
    """The oldest message of the backlog, as of the last check of the age quota (rule 4.6.8)."""
    published = topic.quotas.oldest_published_ms
    if published < 0:
        return {"oldestBacklogMessageAgeSeconds": -1}
    return {
        "oldestBacklogMessageAgeSeconds": max(0, topic.clock.now_ms() - published) // 1000,
        "oldestBacklogMessageSubscriptionName": topic.quotas.oldest_name,
    }


def publisher_shown(producer: Producer, rates: Rates) -> JsonObject:
    """One member of ``publishers`` in the answer to ``GET .../stats``."""
    info, rate = producer.info, rates.of(producer)
    return {
        "accessMode": info.access_mode.name,
        "msgRateIn": rate.messages_in,
        "msgThroughputIn": rate.bytes_in,
        "averageMsgSize": average(rate.bytes_in, rate.messages_in),
        "chunkedMessageRate": rate.chunks,
        "producerId": info.producer_id,
        "supportsPartialProducer": info.supports_partial,
        "producerName": info.name,
        "address": info.address,
        "connectedSince": info.connected_since,
        "clientVersion": info.client_version,
        "metadata": {**info.metadata},
    }


def average(size: float, messages: float) -> float:
    """The average number of bytes per message."""
    return size / messages if messages else 0.0


def _integer(value: Json, name: str) -> int:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, int) else 0
