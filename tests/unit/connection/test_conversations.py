"""Requests beside sending and receiving, end to end in a simulated broker: each answer and each refusal once."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from magnetar.broker.connection.listener import Connections
from magnetar.config.settings import Settings
from magnetar.model.errors import ServerError
from magnetar.model.names import TopicName
from magnetar.model.policies import Json
from magnetar.protocol import commands as c
from magnetar.testing.broker import HOST, PORT
from magnetar.testing.rawclient import RawClientError, make_entry
from tests.sim.world import T, World
from tests.support.at_once import at_once
from tests.support.connections import connected as listening
from tests.support.connections import fake_service, hang_up
from tests.support.conversations import connected, stats, talk

NAMESPACE = "public/default"


def test_who_is_connected_is_shown() -> None:
    """Names, metadata, versions and addresses of clients stand in the statistics (rules 3.1.11, 5.10.2, 11.4.10)."""

    async def simulation(world: World) -> None:
        client = await connected(version="my client 1.0")
        await client.producer(T, "p", metadata=(("a", "b"),))
        await client.subscribe(T, "s", consumer_name="c", metadata=(("x", "y"),))
        shown = await stats(world)
        (publisher,) = shown["publishers"]
        (consumer,) = shown["subscriptions"]["s"]["consumers"]
        assert (publisher["producerName"], publisher["metadata"]) == ("p", {"a": "b"})
        assert (consumer["consumerName"], consumer["metadata"]) == ("c", {"x": "y"})
        for one in (publisher, consumer):
            assert one["clientVersion"] == "my-client-1.0"
            assert one["address"].startswith("/")
            assert one["connectedSince"]

    talk(simulation)


def test_chunks_are_noted_once_one_was_published() -> None:
    """The statistics show that chunks were published from the first one on (rule 3.6.4)."""

    async def simulation(world: World) -> None:
        client = await connected()
        producer = await client.producer(T)
        await producer.publish(b"whole")
        assert (await stats(world))["msgChunkPublished"] is False
        entry = make_entry(b"part", producer=producer.name, sequence_id=1)
        await producer.receipt(producer.send(b"", entry=entry, chunk=True))
        assert (await stats(world))["msgChunkPublished"] is True

    talk(simulation)


@pytest.mark.parametrize("alive", [True, False])
def test_a_name_in_use_is_free_once_its_owner_gives_no_sign_of_life(alive: bool) -> None:
    async def simulation(world: World) -> None:
        owner = await connected(answer_pings=alive)
        await owner.producer(T, "n")
        other = await connected()
        begun = world.loop.time()
        if alive:
            with pytest.raises(RawClientError) as refused:
                await other.producer(T, "n")
            assert refused.value.code is ServerError.ProducerBusy
            assert "already connected" in refused.value.message
            await asyncio.sleep(20)
            assert not owner.lost.done(), "a sign of life is enough"
        else:
            producer = await other.producer(T, "n")
            assert world.loop.time() - begun >= 5
            await producer.publish(b"mine now")
            await asyncio.sleep(1)
            assert owner.lost.done()
        with pytest.raises(RawClientError):
            await other.producer(T, "n")  # a producer of the same connection is not probed

    talk(simulation)


@pytest.mark.parametrize("alive", [True, False])
def test_an_exclusive_place_is_free_once_its_owner_gives_no_sign_of_life(alive: bool) -> None:
    async def simulation(world: World) -> None:
        owner = await connected(answer_pings=alive)
        held = await owner.subscribe(T, "s")
        held.flow(10)
        other = await connected()
        if alive:
            with pytest.raises(RawClientError) as refused:
                await other.subscribe(T, "s")
            assert refused.value.code is ServerError.ConsumerBusy
            with pytest.raises(RawClientError):
                await owner.subscribe(T, "s")
            await asyncio.sleep(20)
            assert not owner.lost.done(), "a sign of life is enough"
        else:
            consumer = await other.subscribe(T, "s")
            consumer.flow(10)
            producer = await other.producer(T)
            await producer.publish(b"x")
            await consumer.receive()
        with pytest.raises(RawClientError):
            await other.subscribe(T, "s", c.SubType.Shared)
        await asyncio.sleep(20)
        assert not other.heard(c.CommandSuccess), "refused and nothing else"
        assert not other.heard(c.CommandError), "refused once"

    talk(simulation)


def test_what_is_opened_twice_is_the_same_and_what_is_reserved_is_refused() -> None:
    async def simulation(world: World) -> None:
        client = await connected()
        first = await client.request(c.CommandProducer(T, 1005, client.new_id(), "p"), c.CommandProducerSuccess)
        again = await client.request(c.CommandProducer(T, 1005, client.new_id(), "p"), c.CommandProducerSuccess)
        assert (again.producer_name, again.last_sequence_id) == (first.producer_name, -1)
        later = await client.request(
            c.CommandProducer(T, 1005, client.new_id(), "p", epoch=1), c.CommandProducerSuccess
        )
        assert later.producer_name == "p"
        assert len((await stats(world))["publishers"]) == 1
        await client.request(c.CommandSubscribe(T, "s", c.SubType.Shared, 1006, client.new_id()), c.CommandSuccess)
        await client.request(c.CommandSubscribe(T, "s", c.SubType.Shared, 1006, client.new_id()), c.CommandSuccess)
        assert len((await stats(world))["subscriptions"]["s"]["consumers"]) == 1
        for name in ("", "pulsar.dedup", "pulsar.repl.a"):
            with pytest.raises(RawClientError) as refused:
                await client.subscribe(T, name)
            assert refused.value.code is ServerError.ProducerBusy
        with pytest.raises(RawClientError) as refused:
            await client.subscribe(T, "compacted", c.SubType.Shared, read_compacted=True)
        assert refused.value.code is ServerError.NotAllowedError
        assert set((await stats(world))["subscriptions"]) == {"s"}

    talk(simulation)


def test_a_publish_rate_holds_as_soon_as_it_is_said_and_no_longer() -> None:
    async def simulation(world: World) -> None:
        client = await connected()
        producer = await client.producer(T)
        policies = world.machine.broker.resources.topic_policies

        async def seconds_of(messages: int) -> float:
            begun = world.loop.time()
            for _ in range(messages):
                await producer.publish(b"x")
            return world.loop.time() - begun

        def say(rate: int | None) -> None:
            value: Json = (
                None if rate is None else {"publishThrottlingRateInMsg": rate, "publishThrottlingRateInByte": -1}
            )
            at_once(policies.update(TopicName.parse(T), "publishRate", value))

        quick = await seconds_of(40)
        say(10)
        assert await seconds_of(40) > 2
        say(20)
        assert 1 < await seconds_of(40) < 3
        say(None)
        assert await seconds_of(40) < quick + 1

    talk(simulation)


def test_a_watcher_hears_of_topics_that_come_and_go_until_it_closes() -> None:
    async def simulation(world: World) -> None:
        client = await connected()
        await client.producer(f"persistent://{NAMESPACE}/a-1")
        await client.producer(f"persistent://{NAMESPACE}/b-1")
        pattern = f"persistent://{NAMESPACE}/a-.*"
        begun = await client.request(
            c.CommandWatchTopicList(client.new_id(), 7, NAMESPACE, pattern), c.CommandWatchTopicListSuccess
        )
        assert (begun.watcher_id, begun.topics) == (7, (f"persistent://{NAMESPACE}/a-1",))
        await client.producer(f"persistent://{NAMESPACE}/a-2")
        await client.producer(f"persistent://{NAMESPACE}/b-2")
        update = await client.hear(c.CommandWatchTopicUpdate)
        assert (update.watcher_id, update.new_topics, update.deleted_topics) == (
            7,
            (f"persistent://{NAMESPACE}/a-2",),
            (),
        )
        await world.machine.broker.service.delete(TopicName.parse(f"persistent://{NAMESPACE}/a-1"), force=True)
        update = await client.hear(c.CommandWatchTopicUpdate)
        assert (update.new_topics, update.deleted_topics) == ((), (f"persistent://{NAMESPACE}/a-1",))
        for watcher in (7, 7, 99):  # also one that is not there any more, or never was (rule 1.3.17)
            await client.request(c.CommandWatchTopicListClose(client.new_id(), watcher), c.CommandSuccess)
        await client.producer(f"persistent://{NAMESPACE}/a-3")
        await asyncio.sleep(1)
        assert not client.heard(c.CommandWatchTopicUpdate)

    talk(simulation)


def test_a_list_that_is_longer_than_a_frame_is_refused_and_not_watched() -> None:
    """A frame has 10 KB beside the largest message."""

    async def simulation(world: World) -> None:
        client = await connected()
        for number in range(60):
            await client.producer(f"persistent://{NAMESPACE}/{'a' * 150}{number:02}")
        every, few = f"persistent://{NAMESPACE}/.*", f"persistent://{NAMESPACE}/.*1"
        get, watch = c.CommandGetTopicsOfNamespace, c.CommandWatchTopicList
        with pytest.raises(RawClientError, match=r"the list of topics takes 1\d{4} bytes, a frame 10340: "):
            await client.request(get(client.new_id(), NAMESPACE), c.CommandGetTopicsOfNamespaceResponse)
        with pytest.raises(RawClientError, match=r"the list of topics takes 1\d{4} bytes, a frame 10340: ") as refused:
            await client.request(watch(client.new_id(), 7, NAMESPACE, every), c.CommandWatchTopicListSuccess)
        assert refused.value.code is ServerError.NotAllowedError
        assert len(world.machine.broker.service.watched_lists) == 0
        begun = await client.request(watch(client.new_id(), 7, NAMESPACE, few), c.CommandWatchTopicListSuccess)
        assert len(begun.topics) == 6
        await client.producer(f"persistent://{NAMESPACE}/1")
        await client.hear(c.CommandWatchTopicUpdate)
        await asyncio.sleep(1)
        assert not client.heard(c.CommandWatchTopicUpdate)

    talk(simulation, Settings(maxMessageSize=100))


@pytest.mark.parametrize(("allowed", "most", "why"), [(False, 50, "is disabled"), (True, 7, "longer than maximum: 7")])
def test_a_pattern_that_the_broker_does_not_evaluate_is_refused(allowed: bool, most: int, why: str) -> None:
    """A name as long as the longest allowed is accepted."""

    async def simulation(world: World) -> None:
        client = await connected()
        watch = c.CommandWatchTopicList(client.new_id(), 7, NAMESPACE, "a" * (most + allowed))
        with pytest.raises(RawClientError, match=f"Unable to create topic list watcher: .*{why}") as refused:
            await client.request(watch, c.CommandWatchTopicListSuccess)
        assert refused.value.code is ServerError.NotAllowedError
        if allowed:
            await client.request(
                c.CommandWatchTopicList(client.new_id(), 7, NAMESPACE, "a" * most), c.CommandWatchTopicListSuccess
            )

    settings = Settings(enableBrokerSideSubscriptionPatternEvaluation=allowed, subscriptionPatternMaxLength=most)
    talk(simulation, settings)


def test_complaints_are_counted_by_host_and_kind_and_name_the_connection() -> None:
    """All connections of one host share the log lines of a kind, so that connecting again gives no client more of
    them."""

    async def main() -> None:
        service, connections, said = fake_service(), Connections(), list[tuple[str, str]]()
        service.complaints = cast(
            Any, SimpleNamespace(warning=lambda kind, message, *args, extra=None: said.append((kind, message % args)))
        )
        listener, _ = listening(connections, service)
        listener.session.complain("kind", "%d is wrong", 5)
        assert said == [("10.0.0.1 kind", "/10.0.0.1:5000: 5 is wrong")]
        hang_up(listener)

    asyncio.run(main())


def test_lists_of_a_namespace_by_kind_and_pattern() -> None:
    async def simulation(world: World) -> None:
        client = await connected()
        for name in ("persistent://public/default/a", "persistent://public/default/b"):
            await client.producer(name)
        await client.producer("non-persistent://public/default/n")

        async def listed(mode: c.NamespaceMode, pattern: str | None = None) -> list[str]:
            command = c.CommandGetTopicsOfNamespace(client.new_id(), NAMESPACE, mode, pattern)
            answer = await client.request(command, c.CommandGetTopicsOfNamespaceResponse)
            return sorted(name.rpartition("/")[2] for name in answer.topics)

        assert await listed(c.NamespaceMode.PERSISTENT) == ["a", "b"]
        assert await listed(c.NamespaceMode.NON_PERSISTENT) == ["n"]
        assert await listed(c.NamespaceMode.ALL) == ["a", "b", "n"]
        assert await listed(c.NamespaceMode.PERSISTENT, "persistent://public/default/a") == ["a"]

    talk(simulation)


def test_where_and_how_many() -> None:
    async def simulation(world: World) -> None:
        client = await connected()
        found = await client.lookup(T)
        assert (found.response, found.broker_service_url) == (c.LookupType.Connect, f"pulsar://{HOST}:{PORT}")
        assert found.authoritative
        assert (await client.partitions(T)).partitions == 0
        for refused in (await client.lookup("persistent://public/nowhere/t"), await client.lookup("a://b/c/d")):
            assert (refused.response, refused.authoritative) == (c.LookupType.Failed, False)
            assert refused.message
        await world.machine.broker.resources.partitioned.create(
            TopicName.parse("persistent://public/default/parted"), 3
        )
        assert (await client.partitions("persistent://public/default/parted")).partitions == 3

    talk(simulation)


def test_what_a_consumer_is_told_of_itself_and_of_the_end() -> None:
    async def simulation(world: World) -> None:
        client = await connected()
        consumer = await client.subscribe(T, "s", c.SubType.Shared, consumer_name="c")
        empty = await consumer.last_message_id()
        assert (empty.last_message_id.ledger, empty.last_message_id.entry) == (-1, -1)
        producer = await client.producer(T)
        ids = [await producer.publish(b"x") for _ in range(5)]
        consumer.flow(3)
        for _ in range(3):
            await consumer.receive()
        last = (await consumer.last_message_id()).last_message_id
        assert (last.ledger, last.entry) == (ids[-1].ledger, ids[-1].entry)
        found = await client.request(
            c.CommandConsumerStats(client.new_id(), consumer.consumer_id), c.CommandConsumerStatsResponse
        )
        assert (found.consumer_name, found.available_permits, found.unacked_messages) == ("c", 0, 3)
        assert (found.msg_backlog, found.type, found.blocked_consumer_on_unacked_msgs) == (5, "Shared", False)
        for command in (c.CommandGetLastMessageId(99, client.new_id()), c.CommandUnsubscribe(99, client.new_id())):
            with pytest.raises(RawClientError) as refused:
                await client.request(command, c.CommandSuccess)
            assert refused.value.code is ServerError.MetadataError
        for closing in (c.CommandCloseConsumer(99, client.new_id()), c.CommandCloseProducer(99, client.new_id())):
            await client.request(closing, c.CommandSuccess)

    talk(simulation)


def test_without_transactions_every_command_of_theirs_is_refused_once() -> None:
    async def simulation(world: World) -> None:
        client = await connected()
        txn = c.TxnId(0, 0)
        commands: list[Any] = [
            c.CommandTcClientConnectRequest(client.new_id(), 0),
            c.CommandNewTxn(client.new_id(), 1000, 0),
            c.CommandAddPartitionToTxn(client.new_id(), txn, (T,)),
            c.CommandAddSubscriptionToTxn(client.new_id(), txn, ()),
            c.CommandEndTxn(client.new_id(), txn, c.TxnAction.COMMIT),
            c.CommandEndTxnOnPartition(client.new_id(), txn, T, c.TxnAction.COMMIT),
        ]
        for command in commands:
            with pytest.raises(RawClientError) as refused:
                await client.request(command, c.CommandSuccess)
            assert refused.value.code is ServerError.NotAllowedError
            await asyncio.sleep(0.1)
            assert not client._summary(), "one answer each"

    talk(simulation)


def test_coordinators_that_are_not_here_and_transactions_that_are_not_open() -> None:
    async def simulation(world: World) -> None:
        client = await connected()
        here = await client.request(
            c.CommandTcClientConnectRequest(client.new_id(), 0), c.CommandTcClientConnectResponse
        )
        away = await client.request(
            c.CommandTcClientConnectRequest(client.new_id(), 3), c.CommandTcClientConnectResponse
        )
        assert (here.error, away.error) == (None, ServerError.ServiceNotReady)
        unknown = await client.request(
            c.CommandEndTxn(client.new_id(), c.TxnId(0, 77), c.TxnAction.COMMIT), c.CommandEndTxnResponse
        )
        assert unknown.error is ServerError.TransactionNotFound
        producer = await client.producer(T)
        with pytest.raises(RawClientError) as refused:
            await producer.receipt(producer.send(b"x", txn=c.TxnId(0, 77)))
        assert refused.value.code is ServerError.NotAllowedError
        await asyncio.sleep(0.1)
        assert not client._summary(), "one answer each"

    talk(simulation, Settings(transactionCoordinatorEnabled=True))
