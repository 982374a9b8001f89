"""What a real broker does when it is asked as a whole, and what a split of a bundle leaves after a restart."""

from __future__ import annotations

from pathlib import Path

from tests.support.real_broker import TOPIC, RealBroker, run_on_broker

NAMESPACE = "/admin/v2/namespaces/public/default"
QUOTA = {"limitSize": 1, "limitTime": -1, "policy": "consumer_backlog_eviction"}


async def backlog(broker: RealBroker) -> int:
    _, stats = await broker.ask("GET", f"{TOPIC}/t/stats")
    return int(stats["subscriptions"]["s"]["msgBacklog"])


def test_backlog_quotas_are_enforced_when_asked(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        assert (await broker.ask("PUT", f"{TOPIC}/t/subscription/s"))[0] == 204
        producer = await (await broker.client()).producer("persistent://public/default/t")
        for _ in range(3):
            await producer.publish(b"m" * 100)
        assert (await broker.ask("POST", f"{NAMESPACE}/backlogQuota", QUOTA))[0] == 204
        assert await backlog(broker) == 3
        assert (await broker.ask("GET", "/admin/v2/brokers/backlog-quota-check"))[0] == 204
        assert await backlog(broker) == 0
        status, said = await broker.ask("POST", "/admin/v2/brokers/shutdown")
        assert (status, said["reason"]) == (501, "this broker is part of another program, which alone can stop it")

    run_on_broker(tmp_path, scenario, backlogQuotaCheckIntervalInSeconds=3600)


def test_a_split_is_there_after_a_restart(tmp_path: Path) -> None:
    async def before(broker: RealBroker) -> None:
        assert (await broker.ask("PUT", f"{TOPIC}/t"))[0] == 204
        bundle = (await broker.ask("GET", "/lookup/v2/topic/persistent/public/default/t/bundle"))[1]
        assert (await broker.ask("PUT", f"{NAMESPACE}/{bundle}/split?unload=true"))[0] == 204
        assert (await broker.ask("PUT", f"{NAMESPACE}/{bundle}/unload"))[0] == 412

    async def after(broker: RealBroker) -> None:
        assert (await broker.ask("GET", f"{NAMESPACE}/bundles"))[1]["numBundles"] == 5
        half = (await broker.ask("GET", "/lookup/v2/topic/persistent/public/default/t/bundle"))[1]
        assert (await broker.ask("PUT", f"{NAMESPACE}/{half}/unload"))[0] == 204
        owner = broker.node.broker.service.broker_id
        path = f"/admin/v2/brokers/standalone/{owner}/ownedNamespaces"
        assert f"public/default/{half}" not in (await broker.ask("GET", path))[1]
        await (await broker.client()).producer("persistent://public/default/t")
        assert f"public/default/{half}" in (await broker.ask("GET", path))[1]

    run_on_broker(tmp_path, before)
    run_on_broker(tmp_path, after)
