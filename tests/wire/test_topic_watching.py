"""WATCH_TOPIC_LIST through frames (rule 2.19)."""

from __future__ import annotations

import asyncio

import pytest

from magnetar.broker.connection.handlers.lookup_commands import topics_of_namespace
from magnetar.broker.connection.handlers.topic_list_watch import watch_topic_list
from magnetar.broker.namespaces.lookup import topics_hash
from magnetar.model.errors import ServerError
from magnetar.model.names import TopicName
from magnetar.protocol import commands as c
from magnetar.testing.rawclient import RawClient, RawClientError
from tests.wire.bench import Wires, on_broker

NAMESPACE = "public/default"
PREFIX = f"persistent://{NAMESPACE}/"


async def watch(
    client: RawClient, pattern: str, watcher: int = 1, known: str | None = None
) -> c.CommandWatchTopicListSuccess:
    command = c.CommandWatchTopicList(client.new_id(), watcher, NAMESPACE, pattern, known)
    return await client.request(command, c.CommandWatchTopicListSuccess)


def test_updates_are_gathered_and_carry_the_hash_of_the_whole_list() -> None:
    async def test(wires: Wires) -> None:
        watcher, user = await wires.open(), await wires.open()
        await user.producer(f"{PREFIX}a-0")
        first = await watch(watcher, f"{NAMESPACE}/a-.*")
        assert first.topics == (f"{PREFIX}a-0",)
        for i in range(1, 30):
            for name in ("a", "b"):
                user.say(c.CommandProducer(f"{PREFIX}{name}-{i}", user.new_id(), user.new_id()))
        await asyncio.sleep(2)
        assert len(user.heard(c.CommandProducerSuccess)) == 58
        updates = watcher.heard(c.CommandWatchTopicUpdate)
        assert 1 <= len(updates) <= 3, "29 new topics are not 29 frames"
        names = [f"{PREFIX}a-{i}" for i in range(30)]
        assert sorted(name for update in updates for name in update.new_topics) == sorted(names[1:])
        assert updates[-1].topics_hash == topics_hash(names)
        asked = c.CommandGetTopicsOfNamespace(user.new_id(), NAMESPACE, topics_pattern=f"{NAMESPACE}/a-.*")
        assert (await user.request(asked, c.CommandGetTopicsOfNamespaceResponse)).topics_hash == updates[-1].topics_hash
        again = await watch(watcher, f"{NAMESPACE}/a-.*", 2, updates[-1].topics_hash)
        assert (again.topics, again.topics_hash) == ((), updates[-1].topics_hash)

    on_broker(test)


def test_what_goes_is_told_and_what_came_and_went_is_not() -> None:
    async def test(wires: Wires) -> None:
        service = wires.world.machine.broker.service
        watcher, user = await wires.open(), await wires.open()
        producer = await user.producer(f"{PREFIX}a")
        await producer.close()
        await watch(watcher, f"{NAMESPACE}/.*")
        service.create(TopicName.parse(f"{PREFIX}brief"))
        await service.delete(TopicName.parse(f"{PREFIX}brief"), force=True)
        await service.delete(TopicName.parse(f"{PREFIX}a"), force=True)
        service.served(TopicName.parse(f"non-{PREFIX}n"), create=True)
        await asyncio.sleep(1)
        (update,) = watcher.heard(c.CommandWatchTopicUpdate)
        assert (update.new_topics, update.deleted_topics) == ((), (f"{PREFIX}a",))
        assert update.topics_hash == "00000000"
        await user.producer(f"{PREFIX}b")
        service.unload(TopicName.parse(f"{PREFIX}b"))
        await user.producer(f"{PREFIX}b")
        await asyncio.sleep(1)
        assert len(watcher.heard(c.CommandWatchTopicUpdate)) == 2, "unloading is no deletion"

    on_broker(test)


def test_a_closed_watch_and_a_lost_connection_hear_nothing_and_cost_nothing() -> None:
    async def test(wires: Wires) -> None:
        changes = wires.world.machine.broker.service.changes
        watcher, other, user = await wires.open(), await wires.open(), await wires.open()
        await watch(watcher, f"{NAMESPACE}/.*", 7)
        await watch(other, f"{NAMESPACE}/.*", 7)
        await watcher.request(c.CommandWatchTopicListClose(watcher.new_id(), 7), c.CommandSuccess)
        await other.close()
        await asyncio.sleep(1)
        assert not changes._listeners
        await user.producer(f"{PREFIX}a")
        await asyncio.sleep(1)
        assert not watcher.heard(c.CommandWatchTopicUpdate)
        assert not changes._changed

    on_broker(test)


def test_the_flag_and_the_refusal_follow_the_setting() -> None:
    """Without patterns in the broker the flag supports_topic_watchers is off and a watch is refused (rule 1.2.6)."""

    async def test(wires: Wires) -> None:
        client = await wires.silent()
        connected = await client.connect()
        assert connected.feature_flags is not None
        assert connected.feature_flags.supports_topic_watchers is False
        with pytest.raises(RawClientError, match="patterns is disabled") as refused:
            await watch(client, f"{NAMESPACE}/.*")
        assert refused.value.code is ServerError.NotAllowedError

    on_broker(test, enableBrokerSideSubscriptionPatternEvaluation=False)


def test_what_is_no_pattern_is_refused() -> None:
    async def test(wires: Wires) -> None:
        client = await wires.open()
        with pytest.raises(RawClientError, match=r"Invalid topics pattern: public/default/\[") as refused:
            await watch(client, f"{NAMESPACE}/[")
        assert refused.value.code is ServerError.InvalidTopicName
        # Java's consumer gives up its watcher for this code and looks for new topics itself; others it repeats
        with pytest.raises(RawClientError, match="invalid perl operator") as refused:
            await watch(client, f"{NAMESPACE}/(?!a).*")
        assert refused.value.code is ServerError.NotAllowedError

    on_broker(test)


def test_watchers_with_the_same_pattern_share_one_list() -> None:
    async def test(wires: Wires) -> None:
        lists = wires.world.machine.broker.service.watched_lists
        first, second, user = await wires.open(), await wires.open(), await wires.open()
        for client, watcher in ((first, 1), (second, 1), (second, 2)):
            await watch(client, f"{NAMESPACE}/a.*", watcher)
        await watch(first, f"{NAMESPACE}/b.*", 9)
        assert len(lists) == 2
        await user.producer(f"{PREFIX}a")
        await asyncio.sleep(1)
        heard = [update.watcher_id for client in (first, second) for update in client.heard(c.CommandWatchTopicUpdate)]
        assert heard == [1, 1, 2]
        await first.close()
        await asyncio.sleep(1)
        assert len(lists) == 1
        await second.request(c.CommandWatchTopicListClose(second.new_id(), 2), c.CommandSuccess)
        await user.producer(f"{PREFIX}aa")
        await asyncio.sleep(1)
        assert [update.new_topics for update in second.heard(c.CommandWatchTopicUpdate)[2:]] == [(f"{PREFIX}aa",)]

    on_broker(test)


def test_a_list_of_very_many_topics_is_made_in_small_steps() -> None:
    """No step looks at more than some hundred names; topics that are created meanwhile arrive as an update."""

    async def test(wires: Wires) -> None:
        service = wires.world.machine.broker.service
        names = [f"{PREFIX}t-{number:05d}" for number in range(100_000)]
        service.directory.fill(names)
        client = await wires.open()
        (listener,) = wires.world.machine.broker.connections
        session = listener.session
        for steps in (
            topics_of_namespace(
                session, c.CommandGetTopicsOfNamespace(1, NAMESPACE, topics_pattern=f"{NAMESPACE}/t-.*")
            ),
            topics_of_namespace(session, c.CommandGetTopicsOfNamespace(1, NAMESPACE)),
            watch_topic_list(session, c.CommandWatchTopicList(2, 77, NAMESPACE, f"{NAMESPACE}/t-.*")),
        ):
            units = list(steps)
            assert max(units) <= 500
            assert len(units) >= 200
        steps = watch_topic_list(session, c.CommandWatchTopicList(3, 1, NAMESPACE, f"{NAMESPACE}/.*5"))
        for _ in range(50):
            next(steps)
        service.create(TopicName.parse(f"{PREFIX}while-matching-5"))
        await asyncio.sleep(1)  # the changes are notified before the list is sent
        while 1 not in session.watches:
            next(steps)
        service.create(TopicName.parse(f"{PREFIX}while-sending-5"))
        await asyncio.sleep(1)
        assert list(steps)
        await asyncio.sleep(1)
        listed = client.heard(c.CommandWatchTopicListSuccess)[-1]
        (update,) = [each for each in client.heard(c.CommandWatchTopicUpdate) if each.watcher_id == 1]
        assert len(listed.topics) == 10_001
        assert f"{PREFIX}while-matching-5" in listed.topics
        assert update.new_topics == (f"{PREFIX}while-sending-5",)
        assert update.topics_hash == topics_hash([*listed.topics, f"{PREFIX}while-sending-5"])

    on_broker(test)


def test_a_list_that_fits_no_frame_is_refused() -> None:
    async def test(wires: Wires) -> None:
        service = wires.world.machine.broker.service
        service.directory.fill(f"{PREFIX}{'x' * 1000}{number}" for number in range(6000))
        client = await wires.open()
        with pytest.raises(RawClientError, match="give a pattern that fewer topics match") as refused:
            await client.request(
                c.CommandGetTopicsOfNamespace(client.new_id(), NAMESPACE), c.CommandGetTopicsOfNamespaceResponse
            )
        assert refused.value.code is ServerError.NotAllowedError
        with pytest.raises(RawClientError, match="give a pattern"):
            await watch(client, f"{NAMESPACE}/.*")
        assert not service.watched_lists
        assert (await watch(client, f"{NAMESPACE}/.*x1")).topics == (f"{PREFIX}{'x' * 1000}1",)

    on_broker(test)


def test_however_many_watch_one_turn_tells_a_few() -> None:
    async def test(wires: Wires) -> None:
        service = wires.world.machine.broker.service
        client, user = await wires.open(), await wires.open()
        for number in range(60):
            await watch(client, f"{NAMESPACE}/.*{'' if number % 2 else '|x'}", number)
        jobs: list[int] = []
        work = service.changes._work

        def counted() -> None:
            before = len(service.changes._jobs)
            work()
            jobs.append(before - len(service.changes._jobs))

        service.changes._work = counted  # type: ignore[method-assign]
        await user.producer(f"{PREFIX}a")
        await asyncio.sleep(1)
        assert len(client.heard(c.CommandWatchTopicUpdate)) == 60
        assert len(jobs) >= 15
        assert not service.changes._jobs

    on_broker(test)
