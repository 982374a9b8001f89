"""Metadata of ledgers, backlogs, shadow topics, replication of subscriptions: answers of Apache Pulsar 4.0.8."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from magnetar.protocol import commands as c
from magnetar.testing.rawtransaction import RawTransaction
from tests.support.real_broker import RealBroker, run_on_broker

P = "/admin/v2/persistent/public/default/"
N = "/admin/v2/non-persistent/public/default/"
V3 = "/admin/v3/transactions/"
T = "persistent://public/default/t"


async def prepared(broker: RealBroker) -> tuple[int, int]:
    """Topic ``t`` with four messages, of which subscription ``s`` has acknowledged the first and the third."""
    producer = await (await broker.client()).producer(T)
    await broker.ask("PUT", P + "t/subscription/s", "earliest")
    ids = [(await producer.receipt(producer.send(b"x" * 10))).message_id for _ in range(4)]
    consumer = await (await broker.client()).subscribe(T, "s", c.SubType.Shared)
    consumer.flow(10)
    got = [await consumer.receive() for _ in range(4)]
    for one in (got[0], got[2]):
        await consumer.ack(one.message_id)
    first = ids[0]
    assert first is not None
    return first.ledger, first.entry


def test_internal_info_and_backlogs(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        ledger, entry = await prepared(broker)
        status, info = await broker.ask("GET", P + "t/internal-info")
        assert status == 200
        assert list(info) == ["version", "creationDate", "modificationDate", "ledgers", "cursors"]
        open_one = info["ledgers"][-1]
        assert open_one == {"ledgerId": ledger, "timestamp": 0, "isOffloaded": False}, "0 until it is closed"
        cursor = info["cursors"]["s"]
        assert cursor["markDelete"] == {"ledgerId": ledger, "entryId": entry}
        assert cursor["individualDeletedMessages"] == [
            {"from": {"ledgerId": ledger, "entryId": entry + 1}, "to": {"ledgerId": ledger, "entryId": entry + 2}}
        ]
        status, backlog = await broker.ask("GET", P + "t/backlog")
        size = sum(one["size"] for one in backlog["dataLedgerDetails"])
        assert (status, backlog["storageSize"], backlog["totalMessages"]) == (200, size, 4)
        assert (backlog["messageBacklog"], backlog["topicName"]) == (2, "public/default/persistent/t")
        assert backlog["cursorDetails"] == {"s": {"cursorBacklog": 2, "cursorLedgerId": -1}}

        async def after(ledger: int, entry: int) -> tuple[int, Any]:
            return await broker.ask("PUT", P + "t/backlogSize", {"ledgerId": ledger, "entryId": entry})

        assert await after(-1, -1) == (200, size)
        assert await after(ledger, entry) == (200, size * 3 // 4)
        assert await after(ledger, entry + 3) == (200, 0)
        assert await after(9999, 9999) == (200, 0)
        assert (await broker.ask("PUT", P + "t/backlogSize"))[0] == 400
        assert (await broker.ask("PUT", P + "none/backlogSize", {"ledgerId": 1, "entryId": 1}))[0] == 404

    run_on_broker(tmp_path, scenario)


def test_partitions_and_topics_that_store_nothing(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        await broker.ask("PUT", P + "pt/partitions", 2)
        for index in range(2):
            producer = await (await broker.client()).producer(f"persistent://public/default/pt-partition-{index}")
            await producer.receipt(producer.send(b"x"))
            await broker.ask("PUT", f"{P}pt-partition-{index}/subscription/s", "earliest")
        backlog = (await broker.ask("GET", P + "pt/backlog"))[1]
        assert (backlog["totalMessages"], backlog["messageBacklog"], len(backlog["dataLedgerDetails"])) == (2, 2, 2)
        info = (await broker.ask("GET", P + "pt/internal-info"))[1]
        assert (info["version"], len(info["partitions"])) == (0, 2)
        refused = await broker.ask("PUT", P + "pt/backlogSize", {"ledgerId": 0, "entryId": 0})
        assert refused == (405, {"reason": "calculate backlog size is not allowed for partitioned-topic"})
        stats = (await broker.ask("GET", P + "pt/partitioned-stats"))[1]
        each = stats["partitions"].values()
        assert stats["topicCreationTimeStamp"] == min(one["topicCreationTimeStamp"] for one in each) > 0
        assert stats["lastPublishTimeStamp"] == max(one["lastPublishTimeStamp"] for one in each) > 0
        for path in (N + "np", P + "none"):
            status, empty = await broker.ask("GET", path + "/backlog")
            assert (status, empty["storageSize"], empty["cursorDetails"]) == (200, 0, {})
        assert (await broker.ask("GET", "/admin/v2/persistent/public/none/t/backlog"))[0] == 404
        assert (await broker.ask("GET", P + "none/internal-info"))[0] == 404
        await broker.ask("PUT", N + "np")
        assert (await broker.ask("GET", N + "np/internal-info"))[0] == 405
        assert (await broker.ask("PUT", N + "np/backlogSize", {"ledgerId": 0, "entryId": 0}))[0] == 405

    run_on_broker(tmp_path, scenario)


def test_replicated_status_is_kept_and_shown(tmp_path: Path) -> None:
    path = "/subscription/s/replicatedSubscriptionStatus"

    async def scenario(broker: RealBroker) -> None:
        await broker.ask("PUT", P + "pt/partitions", 2)
        for topic, names in (("t", [T]), ("pt", [f"persistent://public/default/pt-partition-{i}" for i in range(2)])):
            await broker.ask("PUT", f"{P}{topic}/subscription/s", "earliest")
            assert await broker.ask("GET", P + topic + path) == (200, dict.fromkeys(names, False))
            assert (await broker.ask("POST", P + topic + path, True))[0] == 204
            assert await broker.ask("GET", P + topic + path) == (200, dict.fromkeys(names, True))
            assert (await broker.ask("POST", P + topic + path, []))[0] == 400
        assert (await broker.stats("t"))["subscriptions"]["s"]["isReplicated"] is True
        none = path.replace("/s/", "/none/")
        for method, body in (("GET", None), ("POST", True)):
            found = await broker.ask(method, P + "t" + none, body)
            assert found == (404, {"reason": f"Subscription none not found for topic {T}"})
            assert (await broker.ask(method, N + "t" + path, body))[0] == 405
        assert await broker.ask("POST", P + "pt" + none, True) == (404, {"reason": "Topic or subscription not found"})

    async def later(broker: RealBroker) -> None:
        assert await broker.ask("GET", P + "t" + path) == (200, {T: True})
        assert (await broker.ask("POST", P + "t" + path, False))[0] == 204
        assert await broker.ask("GET", P + "t" + path) == (200, {T: False})

    run_on_broker(tmp_path, scenario)
    run_on_broker(tmp_path, later)


def test_shadow_topics_are_refused_by_name(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        await broker.ask("PUT", P + "t")
        await broker.ask("PUT", N + "np")
        assert await broker.ask("GET", P + "t/shadowTopics") == (200, "")
        assert (await broker.ask("PUT", P + "t/shadowTopics", []))[0] == 412
        assert (await broker.ask("PUT", N + "np/shadowTopics", [T]))[0] == 412
        status, refused = await broker.ask("PUT", P + "t/shadowTopics", ["persistent://public/default/u"])
        assert (status, "shadow topics are not available" in refused["reason"]) == (501, True)
        assert (await broker.ask("DELETE", P + "t/shadowTopics"))[0] == 204
        assert (await broker.ask("GET", P + "none/shadowTopics"))[0] == 404

    run_on_broker(tmp_path, scenario)


def test_internals_of_transactions(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        await prepared(broker)
        found = (await broker.ask("GET", V3 + "coordinatorInternalStats/0"))[1]["transactionLogStats"]
        assert found["managedLedgerInternalStats"]["state"] == "LedgerOpened"
        missing = "Transaction coordinator not found! coordinator id : 1"
        assert await broker.ask("GET", V3 + "coordinatorInternalStats/1") == (404, {"reason": missing})
        buffer = (await broker.ask("GET", V3 + "transactionBufferInternalStats/public/default/t"))[1]
        internals = buffer["singleSnapshotSystemTopicInternalStats"]["managedLedgerInternalStats"]
        assert (buffer["snapshotType"], internals["numberOfEntries"]) == ("Single", 4)
        pending = V3 + "pendingAckInternalStats/public/default/t/"
        assert await broker.ask("GET", pending + "s") == (503, {"reason": "Pending ack have not init success!"})
        assert (await broker.ask("GET", pending + "none"))[0] == 404
        client = await broker.client()
        consumer = await client.subscribe(T, "other", c.SubType.Shared, initial_position=c.InitialPosition.Earliest)
        consumer.flow(1)
        txn = await RawTransaction.begin(client)
        await txn.ack(consumer, (await consumer.receive()).message_id)
        assert "pendingAckLogStats" in (await broker.ask("GET", pending + "other"))[1]
        replicas = V3 + "transactionCoordinator/replicas"
        assert [(await broker.ask("POST", replicas, n))[0] for n in (-1, 0, 1, 2, "x")] == [406, 406, 406, 501, 400]

    run_on_broker(tmp_path, scenario, transactionCoordinatorEnabled=True)
