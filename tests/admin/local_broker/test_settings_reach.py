"""Settings reach what obeys them: what each of these objects then does is tested beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from magnetar.app.node import store_settings
from magnetar.broker.policies.broker_policies import for_system_topics, of_broker
from magnetar.broker.policies.topic_settings import dispatch_settings
from magnetar.config.settings import Settings
from magnetar.testing.rawclient import RawClient, RawClientError
from tests.support.real_broker import HOST, TOPIC, RealBroker, run_on_broker

T = "persistent://public/default/t"


def system(settings: Settings) -> object:
    return for_system_topics(of_broker(settings), settings)


@pytest.mark.parametrize(
    ("name", "value", "made", "attribute", "expected"),
    [
        ("activeConsumerFailoverConsistentHashing", True, dispatch_settings,
         "active_consumer_failover_consistent_hashing", True),
        ("dispatcherMaxReadSizeBytes", 99, dispatch_settings, "dispatcher_max_read_size_bytes", 99),
        ("dispatcherMaxRoundRobinBatchSize", 3, dispatch_settings, "dispatcher_max_round_robin_batch_size", 3),
        ("keySharedLookAheadMsgInReplayThresholdPerConsumer", 5, dispatch_settings,
         "key_shared_look_ahead_per_consumer", 5),
        ("keySharedLookAheadMsgInReplayThresholdPerSubscription", 6, dispatch_settings,
         "key_shared_look_ahead_per_subscription", 6),
        ("subscriptionKeySharedConsistentHashingReplicaPoints", 7, dispatch_settings,
         "subscription_key_shared_consistent_hashing_replica_points", 7),
        ("managedLedgerMaxSizePerLedgerMbytes", 3, store_settings, "ledger_bytes_max", 3145728),
        ("managedLedgerMaxLedgerRolloverTimeMinutes", 3, store_settings, "ledger_max_rollover_ms", 180000),
        ("backlogQuotaDefaultRetentionPolicy", "consumer_backlog_eviction", of_broker,
         "size_quota.policy.value", "consumer_backlog_eviction"),
        ("delayedDeliveryEnabled", False, of_broker, "delayed_delivery.active", False),
        ("delayedDeliveryTickTimeMillis", 9, of_broker, "delayed_delivery.tick_ms", 9),
        ("delayedDeliveryMaxDelayInMillis", 9, of_broker, "delayed_delivery.max_delay_ms", 9),
        ("brokerDeleteInactiveTopicsMaxInactiveDurationSeconds", 9, of_broker, "inactive_topics.max_inactive_s", 9),
        ("brokerDeleteInactiveTopicsFrequencySeconds", 8, of_broker, "inactive_topics.max_inactive_s", 8),
        ("managedLedgerOffloadThresholdInSeconds", 9, of_broker, "offload_threshold_s", 9),
        ("maxPublishRatePerTopicInBytes", 9, of_broker, "publish_rate.bytes", 9),
        ("subscribeRatePeriodPerConsumerInSecond", 9, of_broker, "subscribe_rate.period_s", 9),
        ("systemTopicSchemaCompatibilityStrategy", "FULL", system, "schema_compatibility_strategy", "FULL"),
    ],
)  # fmt: skip
def test_a_setting_is_where_it_is_obeyed(
    name: str, value: Any, made: Callable[[Settings], object], attribute: str, expected: object
) -> None:
    """The object that topics or the store obey has the value, and another one without the setting."""
    found = attrgetter(attribute)
    assert found(made(Settings(**{name: value}))) == expected
    assert found(made(Settings())) != expected


def test_connections_are_counted_in_all_and_by_address(tmp_path: Path) -> None:
    """brokerMaxConnections and brokerMaxConnectionsPerIp refuse the next one and leave the others alone."""

    async def steps(broker: RealBroker) -> None:
        first = await broker.client()
        with pytest.raises((RawClientError, OSError, EOFError, asyncio.IncompleteReadError, ConnectionError)):
            second = await RawClient.open(HOST, broker.node.port)
            await asyncio.wait_for(second.connect(), 5)
        await first.producer(T)

    run_on_broker(tmp_path / "all", steps, brokerMaxConnections=1)
    run_on_broker(tmp_path / "each", steps, brokerMaxConnectionsPerIp=1)


def test_connections_to_the_rest_interface_are_counted(tmp_path: Path) -> None:
    """maxHttpServerConnections answers one too many with 503."""

    async def steps(broker: RealBroker) -> None:
        port = int(broker.node.broker.service.web_service_url.rsplit(":", 1)[1])
        _, holder = await asyncio.open_connection(HOST, port)
        await asyncio.sleep(0)
        reader, writer = await asyncio.open_connection(HOST, port)
        writer.write(b"GET /admin/v2/brokers/ready HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        assert b" 503 " in await asyncio.wait_for(reader.readline(), 5)
        for each in (holder, writer):
            each.close()

    run_on_broker(tmp_path, steps, maxHttpServerConnections=1)


def test_no_change_events_without_system_topics(tmp_path: Path) -> None:
    """systemTopicEnabled=false publishes no policies on __change_events; the policies hold nevertheless."""

    async def steps(broker: RealBroker) -> None:
        await (await broker.client()).producer(T)
        assert (await broker.ask("POST", f"{TOPIC}/t/maxConsumers", 1))[0] == 204
        assert not any("__change_events" in name for name in broker.node.broker.service.topics)
        assert broker.node.broker.service.topics[T].policies.max_consumers == 1

    run_on_broker(tmp_path, steps, systemTopicEnabled=False)


def test_what_a_consumer_says_of_itself_is_bounded(tmp_path: Path) -> None:
    """maxConsumerMetadataSize refuses a consumer with more."""

    async def steps(broker: RealBroker) -> None:
        client = await broker.client()
        await client.subscribe(T, "small", metadata=(("a", "b"),))
        with pytest.raises(RawClientError):
            await client.subscribe(T, "large", metadata=(("a", "b" * 100),))

    run_on_broker(tmp_path, steps, maxConsumerMetadataSize=50)
