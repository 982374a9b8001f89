"""Answers as Apache Pulsar 4.0.8 gives them, asked of a whole broker (also recorded in tests/conformance/recorded)."""

from __future__ import annotations

import asyncio
import http.client
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from magnetar.model.names import TopicName
from magnetar.protocol.entries import EntryMetadata, build_entry
from tests.support.real_broker import HOST, RealBroker, run_on_broker

P = "/admin/v2/persistent/public/default/"
N = "/admin/v2/non-persistent/public/default/"
NAMESPACE = "/admin/v2/namespaces/public/default"


def test_message_id_by_time_where_there_is_none(tmp_path: Path) -> None:
    """Without a message since that time the id of the next message is answered; nothing is read."""

    async def scenario(broker: RealBroker) -> None:
        later = int(time.time() * 1000) + 10**9
        await broker.ask("PUT", P + "t")
        status, found = await broker.ask("GET", P + "t/messageid/0")
        assert (status, found["entryId"], found["batchIndex"], found["batchSize"]) == (200, 0, -1, 0)
        assert (await broker.ask("GET", f"{P}t/messageid/{later}"))[1] == found
        producer = await (await broker.client()).producer("persistent://public/default/t")
        ids = [(await producer.receipt(producer.send(b"x"))).message_id for _ in range(3)]
        assert ids[0] is not None
        for time_ms, entry in ((0, 0), (-1, 0), (later, 3)):
            status, found = await broker.ask("GET", f"{P}t/messageid/{time_ms}")
            assert (status, found["ledgerId"], found["entryId"]) == (200, ids[0].ledger, entry)
        assert (await broker.ask("DELETE", P + "t/truncate"))[0] == 204
        for time_ms in (0, later):
            assert (await broker.ask("GET", f"{P}t/messageid/{time_ms}"))[0] == 200
        await broker.ask("PUT", P + "pt/partitions", 2)
        status, found = await broker.ask("GET", P + "pt/messageid/0")
        assert status == 405
        assert "try do it on specific topic partition" in found["reason"]
        assert (await broker.ask("GET", P + "pt-partition-1/messageid/0"))[1]["partitionIndex"] == 1

    run_on_broker(tmp_path, scenario)


def test_health_with_transactions_and_leftovers(tmp_path: Path) -> None:
    """The health check works beside logs that are no topics; the heartbeat topic of an earlier port is deleted."""

    async def scenario(broker: RealBroker) -> None:
        service = broker.node.broker.service
        service.store.open_log("persistent://pulsar/standalone/127.0.0.1:9/healthcheck")
        for _ in range(2):
            assert await broker.ask("GET", "/admin/v2/brokers/health") == (200, "ok")
        left = [name for name in service.store.names() if name.endswith("/healthcheck")]
        assert left == [f"persistent://pulsar/standalone/{service.broker_id}/healthcheck"]

    run_on_broker(tmp_path, scenario, transactionCoordinatorEnabled=True)
    run_on_broker(tmp_path, scenario, transactionCoordinatorEnabled=True)


def test_properties_and_replication_of_a_new_subscription(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        await broker.ask("PUT", P + "t")
        bodies: dict[str, Any] = {
            "a": {"ledgerId": -1, "entryId": -1, "properties": {"k": "v"}},
            "b?replicated=true": {"ledgerId": 2**63 - 1, "entryId": 2**63 - 1, "properties": {"k": 5, "n": None}},
            "c": {"properties": {"k": "v"}},
            "d": {"ledgerId": "-1", "entryId": "-1"},
            "e": {},
        }
        for name, body in bodies.items():
            assert (await broker.ask("PUT", f"{P}t/subscription/{name}", body))[0] == 204
        shown = (await broker.stats("t"))["subscriptions"]
        wanted = {"a": {"k": "v"}, "b": {"k": "5"}, "c": {"k": "v"}, "d": {}, "e": {}}
        assert {name: each["subscriptionProperties"] for name, each in shown.items()} == wanted
        assert {name for name, each in shown.items() if each["isReplicated"] and each["replicated"]} == {"b"}
        for name, properties in wanted.items():
            assert (await broker.ask("GET", f"{P}t/subscription/{name}/properties"))[1] == properties
        assert (await broker.ask("PUT", P + "t/subscription/b/properties", {"x": "y"}))[0] == 204
        for body in ("nonsense", 5, [], {"properties": {"a": {}}}, {"ledgerId": 1}):
            assert (await broker.ask("PUT", P + "t/subscription/z", body))[0] == 400
        client = await broker.client()
        for name in ("a", "new"):
            await client.subscribe("persistent://public/default/t", name, replicate_subscription_state=True)
        shown = (await broker.stats("t"))["subscriptions"]
        assert {name for name, each in shown.items() if each["isReplicated"]} == {"a", "b", "new"}

    run_on_broker(tmp_path, scenario)


def test_headers_of_messages_keep_their_case(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        await broker.ask("PUT", P + "t/subscription/s")
        producer = await (await broker.client()).producer("persistent://public/default/t")
        odd = EntryMetadata("p", 0, 1, properties=(("a", "1"),), partition_key="k\x00\r\nX: y\u0416")
        await producer.receipt(producer.send(b"", entry=build_entry(odd, b"x")))
        port = int(broker.node.broker.service.web_service_url.rpartition(":")[2])

        def names() -> dict[str, str]:
            with closing(http.client.HTTPConnection(HOST, port, timeout=10)) as connection:
                connection.request("GET", P + "t/subscription/s/position/1")
                return dict(connection.getresponse().getheaders())

        found = await asyncio.to_thread(names)
        assert found["X-Pulsar-PROPERTY"] == '{"a":"1"}'
        assert {"X-Pulsar-Message-ID", "X-Pulsar-publish-time", "X-Pulsar-partition-key"} <= set(found)
        assert found["X-Pulsar-partition-key"] == "k?\\r\\nX: y\\u0416"

    run_on_broker(tmp_path, scenario)


def test_non_persistent_topics_with_clients_are_listed_and_shown(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        client = await broker.client()
        await client.subscribe("non-persistent://public/default/t", "s")
        own = N + "t/subscription/s/properties"
        assert await broker.ask("GET", own) == (200, {})
        assert (await broker.ask("PUT", own, {"a": "b"}))[0] == 204
        assert await broker.ask("GET", own) == (200, {"a": "b"})
        for method, path, body, status, reason in (
            ("GET", "/properties", None, 406, "Need to provide a persistent topic name"),
            ("PUT", "/properties", {"a": "b"}, 406, "Need to provide a persistent topic name"),
            ("DELETE", "/properties?key=a", None, 406, "Need to provide a persistent topic name"),
            ("POST", "/trim", None, 405, "Trim on a non-persistent topic is not allowed"),
            ("POST", "/subscription/s/expireMessages/1", None, 405, "Expire messages on a non-persistent topic"),
            ("POST", "/subscription/s/expireMessages", {"ledgerId": 1, "entryId": 1}, 405, "Expire messages on a non"),
            ("POST", "/all_subscription/expireMessages/1", None, 405, "Expire messages for all subscriptions on a non"),
            ("POST", "/subscription/s/resetcursor", {"ledgerId": 1, "entryId": 1}, 405, "on a non-persistent topic"),
            (
                "GET",
                "/subscription/none/properties",
                None,
                404,
                "Subscription none not found for topic non-persistent:",
            ),
        ):
            found = await broker.ask(method, N + "t" + path, body)
            assert found[0] == status, (method, path, found)
            assert reason in found[1]["reason"]
        found = await broker.ask("POST", N + "gone/subscription/s/expireMessages/1")
        assert found == (404, {"reason": "Topic non-persistent://public/default/gone not found"})

    run_on_broker(tmp_path, scenario)


def test_non_persistent_topics_may_be_forbidden(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        status, found = await broker.ask("PUT", N + "t")
        assert status == 409
        assert "unable to load non-persistent topic" in found["reason"]
        assert (await broker.ask("PUT", N + "pt/partitions", 2))[0] == 204
        assert (await broker.ask("PUT", P + "t"))[0] == 204

    run_on_broker(tmp_path, scenario, enableNonPersistentTopics=False)


def avro(*names: str) -> dict[str, Any]:
    fields = ", ".join(f'{{"name": "{name}", "type": "string"}}' for name in names)
    return {"type": "AVRO", "schema": f'{{"type": "record", "name": "A", "fields": [{fields}]}}', "properties": {}}


@pytest.mark.parametrize(
    ("said", "more", "less", "strategy"),
    [
        ("AutoUpdateDisabled", False, False, "ALWAYS_INCOMPATIBLE"),
        ("Backward", False, True, "BACKWARD"),
        ("Forward", True, False, "FORWARD"),
        ("Full", False, False, "FULL"),
        ("AlwaysCompatible", True, True, "ALWAYS_COMPATIBLE"),
        ("BackwardTransitive", False, True, "BACKWARD_TRANSITIVE"),
    ],
)
def test_older_policy_of_schemas_has_its_effect(
    tmp_path: Path, said: str, more: bool, less: bool, strategy: str
) -> None:
    schemas = "/admin/v2/schemas/public/default/t"

    async def scenario(broker: RealBroker) -> None:
        assert (await broker.ask("POST", schemas + "/schema", avro("a")))[0] == 200
        assert (await broker.ask("PUT", NAMESPACE + "/schemaAutoUpdateCompatibilityStrategy", said))[0] == 204
        for candidate, fits in ((avro("a", "b"), more), (avro(), less)):
            status, found = await broker.ask("POST", schemas + "/compatibility", candidate)
            assert (status == 202) == fits
            assert not fits or found["schemaCompatibilityStrategy"] == strategy
        assert (await broker.ask("PUT", NAMESPACE + "/schemaCompatibilityStrategy", "FORWARD"))[0] == 204
        status, found = await broker.ask("POST", schemas + "/compatibility", avro("a", "b"))
        assert (status, found["schemaCompatibilityStrategy"]) == (202, "FORWARD")

    run_on_broker(tmp_path, scenario)


def test_schemas_are_not_updated_by_clients_unless_allowed(tmp_path: Path) -> None:
    path = NAMESPACE + "/isAllowAutoUpdateSchema"

    async def scenario(broker: RealBroker) -> None:
        assert await broker.ask("GET", path) == (200, False)
        assert (await broker.ask("GET", NAMESPACE))[1]["is_allow_auto_update_schema"] is False
        registry = broker.node.broker.service.policies
        name = TopicName.parse("persistent://public/default/t")
        assert registry.of(name).schema_auto_update_allowed is False
        assert (await broker.ask("POST", path, True))[0] == 204
        assert registry.of(name).schema_auto_update_allowed is True
        assert await broker.ask("GET", path) == (200, True)

    run_on_broker(tmp_path, scenario, isAllowAutoUpdateSchemaEnabled=False)


def test_topics_of_one_bundle(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        made = "/admin/v2/namespaces/public/bn"
        halves = {"bundles": {"boundaries": ["0x00000000", "0x80000000", "0xffffffff"], "numBundles": 2}}
        assert (await broker.ask("PUT", made, halves))[0] == 204
        for number in range(6):
            await broker.ask("PUT", f"/admin/v2/persistent/public/bn/t{number}")
        listed = "/admin/v2/persistent/public/bn?bundle="
        low = (await broker.ask("GET", listed + "0x00000000_0x80000000"))[1]
        high = (await broker.ask("GET", listed + "0x80000000_0xffffffff"))[1]
        # as Apache Pulsar spreads these very names
        assert low == [f"persistent://public/bn/t{number}" for number in (0, 1, 4, 5)]
        assert high == [f"persistent://public/bn/t{number}" for number in (2, 3)]
        for other in ("0x00000000_0xffffffff", "nonsense", ""):
            assert await broker.ask("GET", listed + other) == (200, [])

    run_on_broker(tmp_path, scenario)


LOOKS = (
    "lastMessageId", "messageid/0", "messageid/99999999999999", "stats?getEarliestTimeInBacklog=true",
    "stats?getPreciseBacklog=true", "internalStats", "examinemessage?initialPosition=earliest",
    "examinemessage?initialPosition=latest", "examinemessage?initialPosition=earliest&messagePosition=9",
    "subscription/s/position/1", "subscription/s/position/9", "subscription/s/explain", "ledger/0/entry/0",
    "ledger/-1/entry/-1", "ledger/9223372036854775807/entry/0", "compaction", "offload/ledgers", "backlogQuotaMap",
)  # fmt: skip
MOVES: tuple[tuple[str, Any], ...] = (
    ("subscription/s/analyzeBacklog", None), ("subscription/s/resetcursor/0", None),
    ("subscription/s/resetcursor/99999999999999", None), ("subscription/s/resetcursor", {"ledgerId": 0, "entryId": 0}),
    ("subscription/s/resetcursor", {"ledgerId": 2**63 - 1, "entryId": 0}), ("subscription/s/expireMessages/0", None),
    ("subscription/s/expireMessages", {"ledgerId": -1, "entryId": -1}), ("subscription/s/skip/9", None),
    ("subscription/s/skip/-9", None), ("compaction/plan", None), ("trim", None),
)  # fmt: skip


@pytest.mark.parametrize("state", ["empty", "written", "trimmed", "terminated", "trimmed and unloaded"])
def test_harmless_states_are_not_called_damaged(tmp_path: Path, state: str) -> None:
    """Topics without messages, with trimmed ones and terminated ones are never reported as damaged."""

    async def scenario(broker: RealBroker) -> None:
        await broker.ask("PUT", P + "t")
        await broker.ask("PUT", P + "t/subscription/s", "earliest")
        if state != "empty":
            client = await broker.client()
            producer = await client.producer("persistent://public/default/t")
            for _ in range(3):
                await producer.receipt(producer.send(b"x"))
            await client.close()
        steps = [("POST", "terminate")] if state == "terminated" else []
        steps += [("DELETE", "truncate")] if state.startswith("trimmed") else []
        steps += [("PUT", "unload")] if state.endswith("unloaded") else []
        for step in steps:
            assert (await broker.ask(step[0], P + "t/" + step[1]))[0] < 300
        asked = [("GET", look, None) for look in LOOKS] + [("POST", move, body) for move, body in MOVES]
        for _ in range(2):
            for method, path, body in asked:
                status, found = await broker.ask(method, P + "t/" + path, body)
                assert status < 500, (method, path, found)
                assert "damage" not in str(found).lower(), (method, path, found)

    run_on_broker(tmp_path, scenario)


def test_a_deleted_topic_takes_its_grants_along_in_both_domains(tmp_path: Path) -> None:
    """Who makes a topic of that name later must not share it with those who had the old one."""

    async def scenario(broker: RealBroker) -> None:
        for path in (P, N):
            assert (await broker.ask("PUT", path + "t"))[0] == 204
            assert (await broker.ask("POST", path + "t/permissions/alice", ["produce"]))[0] == 204
            assert (await broker.ask("DELETE", path + "t"))[0] == 204
            assert (await broker.ask("PUT", path + "t"))[0] == 204
            assert await broker.ask("GET", path + "t/permissions") == (200, {})

    run_on_broker(tmp_path, scenario)
