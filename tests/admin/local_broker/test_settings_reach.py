"""Settings reach what obeys them: what each of these objects then does is tested beside it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.frames import Opcode

from magnetar.app.node import store_settings
from magnetar.broker.policies.broker_policies import for_system_topics, of_broker
from magnetar.broker.policies.topic_settings import dispatch_settings
from magnetar.config.configuration import load
from magnetar.config.settings import Settings
from magnetar.model.errors import InvalidValueError
from magnetar.model.names import TopicName
from magnetar.testing.rawclient import RawClient, RawClientError
from tests.support.real_broker import HOST, TOPIC, RealBroker, run_on_broker

T = "persistent://public/default/t"


def system(settings: Settings) -> object:
    return for_system_topics(of_broker(settings), settings)


REACHED: list[tuple[str, Any, Callable[[Settings], object], str, object]] = [
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
]  # fmt: skip


@pytest.mark.parametrize(("name", "value", "made", "attribute", "expected"), REACHED, ids=[row[0] for row in REACHED])
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


def test_what_web_sockets_are_held_to(tmp_path: Path) -> None:
    """webSocketMaxTextFrameSize closes the socket of a larger frame; webSocketPingDurationSeconds makes pings."""

    async def steps(broker: RealBroker) -> None:
        url = broker.node.broker.service.web_service_url.replace("http", "ws")
        pings = asyncio.Event()

        class Watched(ClientConnection):
            def process_event(self, event: Any) -> None:
                if getattr(event, "opcode", None) is Opcode.PING:
                    pings.set()
                super().process_event(event)

        path = "/ws/v2/producer/persistent/public/default/t"
        async with connect(url + path, create_connection=Watched, proxy=None) as socket:
            await asyncio.wait_for(pings.wait(), 10)
            await socket.send(json.dumps({"payload": "aGVsbG8="}))
            assert json.loads(await socket.recv())["result"] == "ok"
            await socket.send(json.dumps({"payload": "a" * 400}))
            with pytest.raises(ConnectionClosed) as closed:
                await asyncio.wait_for(socket.recv(), 10)
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1009

    run_on_broker(
        tmp_path, steps,
        webSocketServiceEnabled=True, webSocketMaxTextFrameSize=300, webSocketPingDurationSeconds=1,
    )  # fmt: skip


@pytest.mark.parametrize("checked", [True, False])
def test_quotas_are_checked_unless_that_is_switched_off(tmp_path: Path, checked: bool) -> None:
    """backlogQuotaCheckEnabled=false leaves the pass out."""

    async def steps(broker: RealBroker) -> None:
        assert ("quotas" in [one.name for one in broker.node.broker.upkeep._passes]) is checked

    run_on_broker(tmp_path, steps, backlogQuotaCheckEnabled=checked)


@pytest.mark.parametrize("goes", [True, False])
def test_a_partitioned_topic_without_partitions_goes_if_that_is_asked_for(tmp_path: Path, goes: bool) -> None:
    """brokerDeleteInactivePartitionedTopicMetadataEnabled, when disuse has taken its last partition."""

    async def steps(broker: RealBroker) -> None:
        assert (await broker.ask("PUT", f"{TOPIC}/parts/partitions", 2))[0] == 204
        service, disuse = broker.node.broker.service, broker.node.broker.upkeep.inactive_topics
        for name in service.partitions_of(TopicName.parse("persistent://public/default/parts")):
            service.find(name)  # used once
        assert await disuse.delete_topics() == 0
        for topic in service.topics.values():
            topic.idle_since_ms = 0
        assert await disuse.delete_topics() == 2
        _, listed = await broker.ask("GET", f"{TOPIC}/partitioned")
        assert listed == ([] if goes else ["persistent://public/default/parts"])

    run_on_broker(tmp_path, steps, brokerDeleteInactivePartitionedTopicMetadataEnabled=goes)


def test_rates_are_of_the_last_period(tmp_path: Path) -> None:
    """statsUpdateFrequencyInSecs is how long a period is."""

    async def steps(broker: RealBroker) -> None:
        await (await broker.client()).producer(T)
        assert broker.node.broker.rates._period == 7

    run_on_broker(tmp_path, steps, statsUpdateFrequencyInSecs=7)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["tlsEnabled=true"], "tlsEnabled: no port speaks TLS"),
        (
            ["authorizationEnabled=true", "authenticationEnabled=true", "authorizationProvider=mine.Provider"],
            "authorizationProvider: 'mine.Provider' cannot be run",
        ),
    ],
)
def test_what_cannot_be_protected_is_not_started(flags: list[str], said: str) -> None:
    """A program that would start without what its settings ask for refuses them by name."""
    with pytest.raises(InvalidValueError) as refused:
        load(flags=flags)
    assert said in str(refused.value)
