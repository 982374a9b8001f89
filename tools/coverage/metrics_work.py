"""Work for a broker, in stages, and which families of /metrics move with each: nothing is shown that nobody counts."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, NamedTuple

from magnetar.app.node import Node
from magnetar.protocol import commands as c
from magnetar.protocol.entries import EntryMetadata, build_entry
from magnetar.testing.rawclient import RawClient, RawClientError
from magnetar.testing.rawtransaction import RawTransaction

SETTINGS: Final[dict[str, Any]] = {
    "bindAddress": "127.0.0.1",
    "brokerServicePort": 0,
    "webServicePort": 0,
    "exposeConsumerLevelMetricsInPrometheus": True,
    "exposeProducerLevelMetricsInPrometheus": True,
    "exposeManagedCursorMetricsInPrometheus": True,
    "exposeBundlesMetricsInPrometheus": True,
    "exposeSubscriptionBacklogSizeInPrometheus": True,
    "maxUnackedMessagesPerConsumer": 5,
    "maxUnackedMessagesPerSubscription": 5,
    "managedLedgerCacheSizeMB": 1,
    "transactionCoordinatorEnabled": True,
    "authenticationEnabled": True,
    "authenticationProviders": "org.apache.pulsar.broker.authentication.AuthenticationProviderToken",
    "tokenSecretKey": "data:;base64,bm9ib2R5IGlzIHRvIGtub3cgdGhpcyBrZXksIHdoaWNoIG9wZW5zIG5vdGhpbmc=",
    "anonymousUserRole": "anybody",
}
_SPACE: Final = "persistent://public/default"
_REST: Final = "/admin/v2/persistent/public/default"
_SCHEMA: Final = json.dumps({"type": "record", "name": "A", "fields": [{"name": "a", "type": "long"}]}).encode()
_OTHER: Final = json.dumps({"type": "record", "name": "A", "fields": [{"name": "b", "type": "string"}]}).encode()


class Work:
    """A running node, and what stages do with it."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.clients: list[RawClient] = []

    async def client(self) -> RawClient:
        """A connected client."""
        client = await RawClient.open("127.0.0.1", self.node.port)
        self.clients.append(client)
        await client.connect()
        return client

    async def rest(self, method: str, path: str, body: object = None) -> tuple[int, bytes]:
        """One request; status and body."""
        return await asyncio.to_thread(self._rest, method, path, body)

    def _rest(self, method: str, path: str, body: object) -> tuple[int, bytes]:
        data = None if body is None else json.dumps(body).encode()
        url = self.node.broker.service.web_service_url + path
        request = urllib.request.Request(url, data, {"content-type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as answered:
                return answered.status, answered.read()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read()

    async def scraped(self) -> str:
        """The page after a period has ended."""
        await asyncio.sleep(0.002)  # a period of no length has no rates
        await self.node.broker.rates.look()
        status, page = await self.rest("GET", "/metrics")
        assert status == 200, page
        return page.decode()

    async def close(self) -> None:
        """End all clients."""
        for client in self.clients:
            await client.close()


async def _until(true: Callable[[], bool]) -> None:
    for _ in range(2000):
        if true():
            return
        await asyncio.sleep(0.005)
    raise TimeoutError


class Stage(NamedTuple):
    """Something to do, and the families that move with it; a ``*`` at the end stands for any rest."""

    name: str
    work: Callable[[Work], Awaitable[object]]
    moves: str


async def _publish(work: Work) -> None:
    client = await work.client()
    await client.lookup(f"{_SPACE}/plain")
    producer = await client.producer(f"{_SPACE}/plain")
    await client.subscribe(f"{_SPACE}/plain", "s")
    for i in range(3):
        await producer.publish(b"m%d" % i)


async def _consume(work: Work) -> None:
    client = await work.client()
    consumer = await client.subscribe(f"{_SPACE}/shared", "s", c.SubType.Shared)
    producer = await client.producer(f"{_SPACE}/shared")
    for _ in range(3):
        await producer.publish(b"x")
    consumer.flow(10)
    ids = [(await consumer.receive()).message_id for _ in range(3)]
    await consumer.ack(ids[0], ids[2])
    consumer.redeliver([ids[1]])
    await consumer.receive()


async def _blocked(work: Work) -> None:
    client = await work.client()
    consumer = await client.subscribe(f"{_SPACE}/blocked", "s", c.SubType.Shared)
    producer = await client.producer(f"{_SPACE}/blocked")
    for _ in range(8):
        await producer.publish(b"x")
    consumer.flow(100)
    for _ in range(5):
        await consumer.receive()


async def _delayed(work: Work) -> None:
    client = await work.client()
    await client.subscribe(f"{_SPACE}/delayed", "s", c.SubType.Shared)
    producer = await client.producer(f"{_SPACE}/delayed")
    later = work.node.broker.service.clock.now_ms() + 3_600_000
    entry = build_entry(EntryMetadata(producer.name, 0, later - 3_600_000, deliver_at_time=later), b"x")
    await producer.receipt(producer.send(b"", entry=entry))


async def _expired(work: Work) -> None:
    client = await work.client()
    await client.subscribe(f"{_SPACE}/expired", "s", c.SubType.Shared)
    producer = await client.producer(f"{_SPACE}/expired")
    await producer.receipt(producer.send(b"", entry=build_entry(EntryMetadata(producer.name, 0, 1), b"x")))
    assert (await work.rest("POST", f"{_REST}/expired/subscription/s/expireMessages/1"))[0] == 204


async def _dropped(work: Work) -> None:
    client = await work.client()
    topic = "non-persistent://public/default/np"
    await client.subscribe(topic, "s", c.SubType.Shared)
    producer = await client.producer(topic)
    await producer.publish(b"nobody takes it")


async def _compaction(work: Work) -> None:
    client = await work.client()
    producer = await client.producer(f"{_SPACE}/compacted")
    for _ in range(3):
        await producer.publish(b"value", key="k")
    compactor = work.node.broker.service.topics[f"{_SPACE}/compacted"].compaction()
    assert (await work.rest("PUT", f"{_REST}/compacted/compaction"))[0] == 204
    await compactor.wait()
    assert compactor.status == "SUCCESS", compactor.last_error


async def _transactions(work: Work) -> None:
    client = await work.client()
    producer = await client.producer(f"{_SPACE}/transactions")
    first = await RawTransaction.begin(client)
    await first.publish(producer, b"x")
    await first.commit()
    second = await RawTransaction.begin(client)
    await second.publish(producer, b"x")
    await second.abort()
    late = await RawTransaction.begin(client, ttl_ms=1)
    await _until(lambda: not work.node.broker.service.coordinator.is_open(late.id))
    held = await RawTransaction.begin(client)
    await held.publish(producer, b"x")


async def _schemas(work: Work) -> None:
    client = await work.client()
    topic = f"{_SPACE}/schemas"
    await client.producer(topic, schema=c.Schema("A", _SCHEMA, c.SchemaType.AVRO))
    more = json.loads(_SCHEMA)
    more["fields"].append({"name": "c", "type": "long", "default": 1})
    await client.producer(topic, schema=c.Schema("A", json.dumps(more).encode(), c.SchemaType.AVRO))
    try:
        await client.producer(topic, schema=c.Schema("A", _OTHER, c.SchemaType.AVRO))
    except RawClientError:
        pass
    path = "/admin/v2/schemas/public/default/schemas/schema"
    assert (await work.rest("GET", path))[0] == 200
    assert (await work.rest("DELETE", path))[0] == 200


async def _quotas(work: Work) -> None:
    client = await work.client()
    for name, quota in (("large", {"limitSize": 10}), ("old", {"limitTime": 1})):
        await client.subscribe(f"{_SPACE}/{name}", "s", c.SubType.Shared)
        producer = await client.producer(f"{_SPACE}/{name}")
        for i in range(3):
            entry = build_entry(EntryMetadata(producer.name, i, 1), b"x" * 100)
            await producer.receipt(producer.send(b"", entry=entry))
        kind = "destination_storage" if name == "large" else "message_age"
        body = {"policy": "consumer_backlog_eviction", **quota}
        found = await work.rest("POST", f"{_REST}/{name}/backlogQuota?backlogQuotaType={kind}", body)
        assert found[0] == 204, found
    await work.node.broker.upkeep.check_quotas()


async def _aged(work: Work) -> None:
    client = await work.client()
    await client.subscribe(f"{_SPACE}/aged", "s", c.SubType.Shared)
    producer = await client.producer(f"{_SPACE}/aged")
    await producer.receipt(producer.send(b"", entry=build_entry(EntryMetadata(producer.name, 0, 1), b"x")))
    body = {"policy": "producer_exception", "limitTime": 1 << 30}
    await work.rest("POST", f"{_REST}/aged/backlogQuota?backlogQuotaType=message_age", body)
    await work.node.broker.upkeep.check_quotas()


async def _limited(work: Work) -> None:
    client = await work.client()
    producer = await client.producer(f"{_SPACE}/limited")
    body = {"publishThrottlingRateInMsg": 2, "publishThrottlingRateInByte": -1}
    assert (await work.rest("POST", f"{_REST}/limited/publishRate", body))[0] == 204
    for _ in range(3):
        await producer.publish(b"x")
    for _ in range(4):
        producer.send(b"x")
    await asyncio.sleep(0.05)


async def _throttled(work: Work) -> None:
    client = await work.client()
    limits = {
        "slow": ("dispatchRate", {"dispatchThrottlingRateInMsg": 1, "dispatchThrottlingRateInByte": -1}),
        "narrow": ("subscriptionDispatchRate", {"dispatchThrottlingRateInMsg": -1, "dispatchThrottlingRateInByte": 1}),
    }
    for name, (policy, rate) in limits.items():
        consumer = await client.subscribe(f"{_SPACE}/{name}", "s", c.SubType.Shared)
        producer = await client.producer(f"{_SPACE}/{name}")
        assert (await work.rest("POST", f"{_REST}/{name}/{policy}", {**rate, "ratePeriodInSecond": 1}))[0] == 204
        for _ in range(4):
            await producer.publish(b"x")
        consumer.flow(10)
        pump = work.node.broker.service.topics[f"{_SPACE}/{name}"].subscriptions["s"].pump
        await _until(partial(lambda of: of.throttle is not None and bool(of.throttle.times), pump))


async def _resource_group(work: Work) -> None:
    group = "/admin/v2/resourcegroups/coverage"
    assert (await work.rest("PUT", group, {"publishRateInMsgs": 1000}))[0] == 204
    assert (await work.rest("PUT", group, {"publishRateInMsgs": 2000}))[0] == 204
    for space in ("grouped", "left"):
        assert (await work.rest("PUT", f"/admin/v2/namespaces/public/{space}", {}))[0] == 204
        assert (await work.rest("POST", f"/admin/v2/namespaces/public/{space}/resourcegroup/coverage"))[0] == 204
    assert (await work.rest("DELETE", "/admin/v2/namespaces/public/left/resourcegroup"))[0] == 204
    client = await work.client()
    topic = "persistent://public/grouped/t"
    consumer = await client.subscribe(topic, "s", c.SubType.Shared)
    await (await client.producer(topic)).publish(b"x")
    consumer.flow(1)
    await consumer.receive()


async def _refused(work: Work) -> None:
    client = await work.client()
    await client.lookup("persistent://nobody/nothing/t")
    unknown = await RawClient.open("127.0.0.1", work.node.port)
    await unknown.close()
    connections = work.node.broker.connections
    await _until(lambda: connections.refused > 0)
    await (await work.client()).close()


async def _health(work: Work) -> None:
    assert (await work.rest("GET", "/admin/v2/brokers/health"))[0] == 200


async def _from_disk(work: Work) -> None:
    client = await work.client()
    name = f"{_SPACE}/cold"
    producer = await client.producer(name)
    consumer = await client.subscribe(name, "s")
    for _ in range(12):
        await producer.publish(b"x" * 200_000)
    consumer.flow(12)
    for _ in range(12):
        await consumer.receive()


async def _metadata(work: Work) -> None:
    assert (await work.rest("PUT", "/admin/v2/namespaces/public/other", {}))[0] == 204
    assert (await work.rest("DELETE", "/admin/v2/namespaces/public/other"))[0] == 204


async def _complaint(work: Work) -> None:
    work.node.broker.service.complaints.warning("coverage", "a line for the count of lines")


STAGES: Final = (
    Stage(
        "publish", _publish,
        """pulsar_subscriptions_count pulsar_producers_count pulsar_consumers_count pulsar_topics_count pulsar_rate_in
        pulsar_throughput_in pulsar_average_msg_size pulsar_in_messages_total pulsar_in_bytes_total pulsar_msg_backlog
        pulsar_storage_size pulsar_storage_logical_size pulsar_storage_backlog_size pulsar_storage_write_rate
        pulsar_storage_write_latency_count pulsar_storage_write_latency_sum pulsar_storage_ledger_write_latency_count
        pulsar_storage_ledger_write_latency_sum pulsar_entry_size_le_128 pulsar_entry_size_count pulsar_entry_size_sum
        pulsar_broker_topics_count pulsar_broker_subscriptions_count pulsar_broker_producers_count
        pulsar_broker_consumers_count pulsar_broker_rate_in pulsar_broker_throughput_in pulsar_broker_msg_backlog
        pulsar_broker_storage_size pulsar_broker_storage_logical_size pulsar_broker_storage_write_rate
        pulsar_broker_in_bytes_total pulsar_broker_publish_latency pulsar_broker_lookup pulsar_broker_lookup_answers
        pulsar_topic_load_times pulsar_topic_load_time_* pulsar_topic_load_rate_s pulsar_active_connections
        pulsar_connection_created_total_count pulsar_connection_create_success_count pulsar_ml_AddEntryBytesRate
        pulsar_ml_AddEntryWithReplicasBytesRate pulsar_ml_AddEntryMessagesRate pulsar_ml_AddEntrySucceed
        pulsar_ml_AddEntryLatencyBuckets pulsar_ml_LedgerAddEntryLatencyBuckets pulsar_ml_EntrySizeBuckets
        pulsar_ml_NumberOfMessagesInBacklog pulsar_ml_StoredMessagesSize pulsar_ml_count pulsar_ml_cache_used_size
        pulsar_ml_cache_entries pulsar_ml_cache_inserted_entries_total pulsar_producer_* pulsar_bundle_msg_rate_in
        pulsar_bundle_msg_throughput_in pulsar_bundle_topics_count pulsar_bundle_producer_count
        pulsar_bundle_consumer_count pulsar_subscription_back_log pulsar_subscription_back_log_no_delayed
        pulsar_subscription_consumers_count process_cpu_seconds process_open_fds pulsar_lb_cpu_usage
        magnetar_journal_writes_total magnetar_journal_entries_total magnetar_journal_syncs_total
        magnetar_journal_written_bytes_total magnetar_subscription_backlog_bytes""",
    ),
    Stage(
        "consume", _consume,
        """pulsar_rate_out pulsar_throughput_out pulsar_storage_read_rate pulsar_broker_rate_out
        pulsar_broker_throughput_out pulsar_broker_storage_read_rate pulsar_broker_out_bytes_total
        pulsar_out_messages_total pulsar_out_bytes_total pulsar_subscription_msg_rate_out
        pulsar_subscription_msg_throughput_out pulsar_subscription_msg_rate_redeliver pulsar_subscription_msg_ack_rate
        pulsar_subscription_unacked_messages pulsar_subscription_last_acked_timestamp
        pulsar_subscription_last_consumed_flow_timestamp pulsar_subscription_last_consumed_timestamp
        pulsar_subscription_last_mark_delete_advanced_timestamp pulsar_consumer_msg_rate_redeliver
        pulsar_consumer_unacked_messages pulsar_consumer_msg_rate_out pulsar_consumer_msg_ack_rate
        pulsar_consumer_msg_throughput_out pulsar_consumer_available_permits pulsar_ml_MarkDeleteRate
        pulsar_ml_ReadEntriesRate pulsar_ml_ReadEntriesBytesRate pulsar_ml_cache_hits_rate
        pulsar_ml_cache_hits_throughput pulsar_ml_cursor_nonContiguousDeletedMessagesRange
        pulsar_ml_cursor_persistLedgerSucceed pulsar_ml_cursor_writeLedgerSize pulsar_ml_cursor_writeLedgerLogicalSize
        pulsar_bundle_msg_rate_out pulsar_bundle_msg_throughput_out""",
    ),
    Stage(
        "blocked", _blocked,
        """pulsar_subscription_blocked_on_unacked_messages pulsar_consumer_blocked_on_unacked_messages""",
    ),
    Stage("delayed", _delayed, "pulsar_subscription_delayed pulsar_delayed_message_index_size_bytes"),
    Stage(
        "expired", _expired,
        """pulsar_subscription_total_msg_expired pulsar_subscription_msg_rate_expired
        pulsar_subscription_last_expire_timestamp""",
    ),
    Stage("dropped", _dropped, "pulsar_subscription_msg_drop_rate"),
    Stage(
        "compaction", _compaction,
        """pulsar_compaction_removed_event_count pulsar_compaction_succeed_count
        pulsar_compaction_duration_time_in_mills pulsar_compaction_read_throughput
        pulsar_compaction_write_throughput pulsar_compaction_compacted_entries_count
        pulsar_compaction_compacted_entries_size pulsar_compaction_latency_count pulsar_compaction_latency_sum""",
    ),
    Stage(
        "transactions", _transactions,
        """pulsar_txn_active_count pulsar_txn_created_total pulsar_txn_committed_total pulsar_txn_aborted_total
        pulsar_txn_timeout_total pulsar_txn_append_log_total pulsar_txn_tb_*""",
    ),
    Stage(
        "schemas", _schemas,
        """pulsar_schema_get_ops_latency pulsar_schema_put_ops_latency pulsar_schema_del_ops_latency
        pulsar_schema_put_ops_failed pulsar_schema_compatible pulsar_schema_incompatible""",
    ),
    Stage(
        "quotas", _quotas,
        """pulsar_storage_backlog_quota_exceeded_evictions_total pulsar_storage_backlog_quota_limit
        pulsar_storage_backlog_quota_limit_time pulsar_broker_storage_backlog_quota_exceeded_evictions_total
        pulsar_storage_backlog_quota_check_duration_seconds""",
    ),
    Stage("aged", _aged, "pulsar_storage_backlog_age_seconds"),
    Stage("limited", _limited, "pulsar_publish_rate_limit_times pulsar_broker_throttled_connections"),
    Stage("throttled", _throttled, "pulsar_subscription_dispatch_throttled_*"),
    Stage("resource group", _resource_group, "pulsar_resource_group_*"),
    Stage(
        "refused", _refused,
        "pulsar_broker_lookup_failures pulsar_connection_create_fail_count pulsar_connection_closed_total_count",
    ),
    Stage("health", _health, "pulsar_health"),
    Stage(
        "from disk", _from_disk,
        """pulsar_storage_read_cache_misses_rate pulsar_broker_storage_read_cache_misses_rate
        pulsar_ml_cache_misses_rate pulsar_ml_cache_misses_throughput pulsar_ml_ReadEntriesSucceeded
        pulsar_ml_ReadEntriesOpsCacheMissesRate pulsar_ml_cache_evictions pulsar_ml_cache_evicted_entries_total
        pulsar_ml_cache_pendingreads_missed pulsar_entry_size_le_1_mb""",
    ),
    Stage("metadata", _metadata, "pulsar_metadata_store_put_bytes pulsar_metadata_store_ops_latency_ms"),
    Stage("complaint", _complaint, "log4j2_appender"),
)  # fmt: skip
