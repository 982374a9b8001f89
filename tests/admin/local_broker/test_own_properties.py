"""Properties under names that are the broker's own, and how many a topic, a subscription or a namespace may have.

What a client wrote under such a name was read as the broker's word: the topic had ended, could not be loaded or shown.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from magnetar.model.errors import ServerError
from magnetar.model.names import TopicName
from magnetar.protocol import commands as c
from magnetar.testing.rawclient import RawClientError
from tests.support.real_broker import TOPIC, RealBroker, run_on_broker

NAMESPACE = "/admin/v2/namespaces/public/default"
T = "persistent://public/default/t"


@pytest.mark.parametrize("name", ["magnetar.terminated", "pulsar.topic.epoch"])
def test_a_user_neither_ends_a_topic_nor_moves_its_epoch_by_a_property(tmp_path: Path, name: str) -> None:
    async def act(broker: RealBroker) -> None:
        own = {name: "x", "mine": "1"}
        assert (await broker.ask("PUT", f"{TOPIC}/made", own))[0] == 400
        assert (await broker.ask("PUT", f"{TOPIC}/parts/partitions", {"partitions": 1, "properties": own}))[0] == 400
        assert await broker.ask("GET", f"{NAMESPACE}/topics") == (200, [])
        assert (await broker.ask("PUT", f"{TOPIC}/t", {"mine": "0"}))[0] == 204
        status, found = await broker.ask("PUT", f"{TOPIC}/t/properties", own)
        assert (status, name in found["reason"]) == (400, True)
        assert await broker.ask("GET", f"{TOPIC}/t/properties") == (200, {"mine": "0"})
        assert (await broker.ask("PUT", f"{TOPIC}/t/unload"))[0] == 204
        client = await broker.client()
        await client.producer(T, producer_access_mode=c.ProducerAccessMode.Exclusive)

    run_on_broker(tmp_path, act)


def test_what_users_of_older_versions_wrote_under_such_names_is_no_word_of_the_broker(tmp_path: Path) -> None:
    """They could: the epoch raised for each producer, the topic had ended, its compacted view could not be read."""

    def older(broker: RealBroker) -> None:
        log = broker.node.broker.store.find_log(T)
        assert log is not None
        own = {"pulsar.topic.epoch": "x", "magnetar.terminated": "x", "mine": "1"}
        log.properties = {**log.properties, **own}
        log.write_birth()
        log.cursors["__compaction"].set_properties({"#compacted": "x"})

    async def act(broker: RealBroker) -> None:
        assert (await broker.ask("PUT", f"{TOPIC}/t"))[0] == 204
        assert (await broker.ask("PUT", f"{TOPIC}/t/subscription/__compaction"))[0] == 204
        older(broker)
        assert (await broker.ask("PUT", f"{TOPIC}/t/unload"))[0] == 204
        client = await broker.client()
        shared = await client.producer(T)
        assert shared.opened.topic_epoch is None
        assert (await broker.ask("GET", f"{TOPIC}/t/stats"))[0] == 200
        assert (await broker.ask("GET", f"{TOPIC}/t/internalStats"))[0] == 200
        assert await broker.ask("GET", f"{TOPIC}/t/properties") == (200, {"mine": "1"})
        await shared.close()
        alone = await client.producer(T, producer_access_mode=c.ProducerAccessMode.Exclusive)
        assert alone.opened.topic_epoch == 0
        assert (await broker.ask("PUT", f"{TOPIC}/t/compaction"))[0] == 204

    run_on_broker(tmp_path, act)


def test_a_consumer_does_not_say_where_a_compacted_view_lies(tmp_path: Path) -> None:
    own = {"#compacted": "x"}

    async def act(broker: RealBroker) -> None:
        assert (await broker.ask("PUT", f"{TOPIC}/t"))[0] == 204
        client = await broker.client()
        with pytest.raises(RawClientError, match="#compacted") as refused:
            await client.subscribe(T, "s", subscription_properties=tuple(own.items()))
        assert refused.value.code is ServerError.NotAllowedError
        for name in ("s", "__compaction"):
            assert (await broker.ask("PUT", f"{TOPIC}/t/subscription/{name}", {"properties": own}))[0] == 400
        assert (await broker.ask("PUT", f"{TOPIC}/t/subscription/s"))[0] == 204
        assert (await broker.ask("PUT", f"{TOPIC}/t/subscription/s/properties", own))[0] == 400
        assert (await broker.ask("GET", f"{TOPIC}/t/internalStats"))[0] == 200

    run_on_broker(tmp_path, act)


def test_other_names_with_a_number_sign_are_the_users(tmp_path: Path) -> None:
    """Apache Pulsar refuses those of its own only."""

    async def act(broker: RealBroker) -> None:
        assert (await broker.ask("PUT", f"{TOPIC}/t"))[0] == 204
        client = await broker.client()
        await client.subscribe(T, "s", subscription_properties=(("#team", "a"),))
        assert await broker.ask("GET", f"{TOPIC}/t/subscription/s/properties") == (200, {"#team": "a"})
        assert (await broker.ask("PUT", f"{TOPIC}/t/subscription/s/properties", {"b": "c"}))[0] == 204
        assert await broker.ask("GET", f"{TOPIC}/t/subscription/s/properties") == (200, {"b": "c"})

    run_on_broker(tmp_path, act)


@pytest.mark.parametrize(
    ("path", "most", "more"),
    [
        (f"{TOPIC}/t", 1 << 20, 1 << 19),
        (NAMESPACE, 1 << 20, 1 << 19),
        (f"{TOPIC}/t/subscription/s", 64 << 10, 64 << 10),  # what is set takes the place of all there was
    ],
)
def test_properties_do_not_grow_with_each_request(tmp_path: Path, path: str, most: int, more: int) -> None:
    """They are written whole with each change, and were so when they were a hundred megabytes."""

    async def act(broker: RealBroker) -> None:
        for made in (f"{TOPIC}/t", f"{TOPIC}/t/subscription/s"):
            assert (await broker.ask("PUT", made))[0] == 204
        assert (await broker.ask("PUT", f"{path}/properties", {"a": "x" * (most // 2)}))[0] == 204
        assert (await broker.ask("PUT", f"{path}/properties", {"b": "x" * more}))[0] == 412
        assert list((await broker.ask("GET", f"{path}/properties"))[1]) == ["a"]

    run_on_broker(tmp_path, act)


def test_properties_that_an_older_version_let_in_are_removed_one_by_one(tmp_path: Path) -> None:
    async def act(broker: RealBroker) -> None:
        path = f"{TOPIC}/p"
        assert (await broker.ask("PUT", f"{path}/partitions", 1))[0] == 204
        old = {"magnetar.a": "1", "pulsar.topic.b": "2", "large": "x" * (1 << 20), "larger": "x" * (1 << 20)}
        await broker.node.broker.service.resources.partitioned.set_properties(TopicName.parse(T[:-1] + "p"), old)
        for gone in ("larger", "large"):
            assert (await broker.ask("PUT", f"{path}/properties", {"mine": "3"}))[0] == 412
            assert (await broker.ask("DELETE", f"{path}/properties?key={gone}"))[0] == 204
        assert (await broker.ask("PUT", f"{path}/properties", {"mine": "3"}))[0] == 204
        assert (await broker.ask("DELETE", f"{path}/properties?key=magnetar.a"))[0] == 204
        assert await broker.ask("GET", f"{path}/properties") == (200, {"pulsar.topic.b": "2", "mine": "3"})

    run_on_broker(tmp_path, act)


def test_new_partitions_have_the_subscriptions_with_their_properties(tmp_path: Path) -> None:
    async def act(broker: RealBroker) -> None:
        assert (await broker.ask("PUT", f"{TOPIC}/parts/partitions", 1))[0] == 204
        assert (await broker.ask("PUT", f"{TOPIC}/parts/subscription/s?replicated=true"))[0] == 204
        path = f"{TOPIC}/parts/subscription/s/properties"
        assert (await broker.ask("PUT", path, {"mine": "1"}))[0] == 204
        assert (await broker.ask("POST", f"{TOPIC}/parts/partitions", 2))[0] == 204
        stats = (await broker.ask("GET", f"{TOPIC}/parts-partition-1/stats"))[1]["subscriptions"]["s"]
        assert (stats["subscriptionProperties"], stats["isReplicated"]) == ({"mine": "1"}, True)

    run_on_broker(tmp_path, act)
