"""Non-persistent topics over REST, beside real clients (rules 13.8, 13.10, 13.11)."""

from __future__ import annotations

import asyncio
from pathlib import Path

from magnetar.protocol import commands as c
from tests.support.real_broker import RealBroker, real_broker

T = "non-persistent://public/default/t"
PATH = "/admin/v2/non-persistent/public/default"


async def fill(broker: RealBroker) -> None:
    """Publish 5 messages beside a consumer with 3 permits and one without, each on its own subscription."""
    sender, taker = await broker.client(), await broker.client()
    producer = await sender.producer(T, "p")
    some = await taker.subscribe(T, "some", c.SubType.Shared, consumer_name="c")
    await taker.subscribe(T, "none", c.SubType.Key_Shared)
    some.flow(3)
    await taker.request(c.CommandConsumerStats(taker.new_id(), some.consumer_id), c.CommandConsumerStatsResponse)
    for number in range(5):
        await producer.publish(b"%d" % number)


async def counts_and_rates(data: Path) -> None:
    async with real_broker(data) as broker:
        await fill(broker)
        rates = broker.node.broker.rates
        await rates.look()
        await asyncio.sleep(0.05)
        sender = await broker.client()
        producer = await sender.producer(T, "q")
        await rates.look()
        await asyncio.sleep(0.05)
        for number in range(5):
            await producer.publish(b"%d" % number)
        await rates.look()
        status, stats = await broker.ask("GET", f"{PATH}/t/stats")
        assert status == 200
        assert (stats["msgInCounter"], stats["msgOutCounter"], stats["storageSize"]) == (10, 3, 0)
        some, none = stats["subscriptions"]["some"], stats["subscriptions"]["none"]
        assert (some["msgOutCounter"], none["msgOutCounter"]) == (3, 0)
        assert (some["msgBacklog"], some["unackedMessages"], some["isDurable"]) == (0, 0, False)
        assert some["consumers"][0]["availablePermits"] == 0
        assert some["msgDropRate"] > 0
        assert none["msgDropRate"] > 0
        assert stats["msgDropRate"] == 0.0, "that of publishers: none was over the limit"
        assert {publisher["producerName"] for publisher in stats["publishers"]} == {"p", "q"}
        topic = broker.node.broker.service.nonpersistent_topics.by_name[T]
        assert topic.dropped() == 7 + 10
        status, internal = await broker.ask("GET", f"{PATH}/t/internalStats")
        assert (status, internal["entriesAddedCounter"], internal["numberOfEntries"]) == (200, 10, 0)
        _, metrics = await broker.ask("GET", "/metrics")
        assert f'topic="{T}"' in metrics


async def life(data: Path) -> None:
    async with real_broker(data) as broker:
        assert await broker.ask("PUT", f"{PATH}/made") == (204, "")
        assert (await broker.ask("PUT", f"{PATH}/made"))[0] == 409
        await fill(broker)
        assert await broker.ask("GET", PATH) == (200, [f"{T[:-1]}made", T])
        listed = "/admin/v2/namespaces/public/default/topics?mode="
        assert await broker.ask("GET", listed + "NON_PERSISTENT") == (200, [f"{T[:-1]}made", T])
        assert await broker.ask("GET", listed + "PERSISTENT") == (200, [])
        assert await broker.ask("GET", f"{PATH}/t/subscriptions") == (200, ["some", "none"])
        assert (await broker.ask("DELETE", f"{PATH}/t/subscription/none"))[0] == 204
        assert await broker.ask("GET", f"{PATH}/t/subscriptions") == (200, ["some"])
        assert (await broker.ask("DELETE", f"{PATH}/t"))[0] == 412
        assert (await broker.ask("DELETE", f"{PATH}/t?force=true"))[0] == 204
        assert (await broker.ask("DELETE", f"{PATH}/t"))[0] == 204, "as Apache Pulsar has it"
        assert (await broker.ask("GET", f"{PATH}/t/stats"))[0] == 404
        status, said = await broker.ask("GET", f"{PATH}/made/lastMessageId")
        assert (status, said["reason"]) == (405, "GetLastMessageId on a non-persistent topic is not allowed")
        assert (await broker.ask("POST", f"{PATH}/made/terminate"))[0] == 406
        assert await broker.ask("DELETE", f"{PATH}/made/truncate") == (412, {"reason": "unsupport truncate"})
        assert (await broker.ask("PUT", f"{PATH}/made/unload"))[0] == 204
        assert await broker.ask("GET", PATH) == (200, [])
        assert not broker.node.broker.store.names()


async def missed_partitions(data: Path) -> None:
    path = "/admin/v2/persistent/public/default"
    async with real_broker(data) as broker:
        assert (await broker.ask("PUT", f"{path}/p/partitions", 3))[0] == 204
        assert (await broker.ask("DELETE", f"{path}/p-partition-1"))[0] == 204
        assert len((await broker.ask("GET", path))[1]) == 2
        assert (await broker.ask("POST", f"{path}/p/createMissedPartitions"))[0] == 204
        assert len((await broker.ask("GET", path))[1]) == 3
        status, said = await broker.ask("POST", f"{path}/plain/createMissedPartitions")
        assert (status, said["reason"]) == (404, "Topic persistent://public/default/plain does not exist")


def test_statistics_count_what_passed_and_what_was_dropped(tmp_path: Path) -> None:
    asyncio.run(counts_and_rates(tmp_path))


def test_topics_are_created_subscribed_and_deleted(tmp_path: Path) -> None:
    asyncio.run(life(tmp_path))


def test_missed_partitions_are_made(tmp_path: Path) -> None:
    asyncio.run(missed_partitions(tmp_path))
