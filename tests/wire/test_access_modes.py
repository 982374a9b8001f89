"""Producer access modes and topic epochs, frame by frame (rules of 3.2)."""

from __future__ import annotations

from typing import Any

import pytest

from magnetar.model.errors import ServerError
from magnetar.model.names import TopicName
from magnetar.protocol import commands as c
from magnetar.testing.rawclient import DisconnectedError, RawClient, RawClientError, RawProducer
from tests.wire.bench import Wires, on_broker

T = "persistent://public/default/t"
SHARED = c.ProducerAccessMode.Shared
EXCLUSIVE = c.ProducerAccessMode.Exclusive
FENCING = c.ProducerAccessMode.ExclusiveWithFencing
WAIT = c.ProducerAccessMode.WaitForExclusive


async def take(client: RawClient, name: str, mode: c.ProducerAccessMode, **options: Any) -> RawProducer:
    return await client.producer(T, name, producer_access_mode=mode, **options)


async def queue(client: RawClient, name: str, **options: Any) -> c.CommandProducer:
    """Opens a WaitForExclusive producer that has to wait, as its first answer says."""
    command = c.CommandProducer(T, client.new_id(), client.new_id(), name, producer_access_mode=WAIT, **options)
    answer = await client.request(command, c.CommandProducerSuccess)
    assert not answer.producer_ready
    assert answer.topic_epoch is None
    return command


async def promoted(client: RawClient, command: c.CommandProducer) -> c.CommandProducerSuccess:
    return await client.hear(c.CommandProducerSuccess, where=lambda answer: answer.request_id == command.request_id)


def refusal(error: str, text: str) -> str:
    return f"{error}: org.apache.pulsar.broker.service.BrokerServiceException.{error}Exception: {text}"


def test_shared_and_exclusive_refuse_each_other() -> None:
    """Shared producers are refused while an exclusive one is connected, and the other way round (rules 3.2.1 and
    3.2.2)."""

    async def test(wires: Wires) -> None:
        client = await wires.open()
        shared = await take(client, "a", SHARED)
        assert shared.opened.topic_epoch is None
        with pytest.raises(RawClientError, match=refusal("ProducerFenced", "Topic has existing shared producers")):
            await take(client, "b", EXCLUSIVE)
        await shared.close()
        assert (await take(client, "c", EXCLUSIVE)).opened.topic_epoch == 0
        owned = "Topic has an existing exclusive producer: c"
        with pytest.raises(RawClientError, match=refusal("ProducerBusy", owned)):
            await take(client, "d", SHARED)
        with pytest.raises(RawClientError, match=refusal("ProducerFenced", owned)):
            await take(client, "e", EXCLUSIVE)

    on_broker(test)


def test_the_queue_is_served_in_order_and_forgets_who_left() -> None:
    """Waiting producers are promoted in order when the owner leaves, by CLOSE_PRODUCER or with its connection (rule
    3.2.4)."""

    async def test(wires: Wires) -> None:
        owner, other = await wires.open(), await wires.open()
        first = await take(owner, "owner", EXCLUSIVE)
        waiting = [await queue(other, f"w{i}") for i in range(3)]
        lost = await wires.open()
        await queue(lost, "lost")
        last = await queue(other, "last")
        assert wires.world.machine.broker.service.topics[T].producers.waiting == 5
        await lost.close()
        await other.request(c.CommandCloseProducer(waiting[1].producer_id, other.new_id()), c.CommandSuccess)
        with pytest.raises(RawClientError, match="existing exclusive producer: owner"):
            await take(other, "x", EXCLUSIVE)
        await first.close()
        answer = await promoted(other, waiting[0])
        assert (answer.producer_ready, answer.topic_epoch) == (True, 1)
        assert not other.heard(c.CommandProducerSuccess)
        await other.request(c.CommandCloseProducer(waiting[0].producer_id, other.new_id()), c.CommandSuccess)
        assert (await promoted(other, waiting[2])).topic_epoch == 2
        await other.request(c.CommandCloseProducer(waiting[2].producer_id, other.new_id()), c.CommandSuccess)
        assert (await promoted(other, last)).topic_epoch == 3

    on_broker(test)


def test_a_waiting_producer_follows_the_last_of_the_shared_ones() -> None:
    """A producer that waits for shared ones is promoted after the last of them, and no other gets in meanwhile (rules
    3.2.1 and 3.2.4)."""

    async def test(wires: Wires) -> None:
        client = await wires.open()
        shared = [await take(client, name, SHARED) for name in ("a", "b")]
        waiting = await queue(client, "w")
        with pytest.raises(RawClientError, match=refusal("ProducerBusy", "Topic has an existing exclusive producer: ")):
            await take(client, "c", SHARED)
        await shared[0].close()
        assert not client.heard(c.CommandProducerSuccess)
        await shared[1].close()
        assert (await promoted(client, waiting)).topic_epoch == 0

    on_broker(test)


def test_fencing_takes_the_place_of_all_producers() -> None:
    """ExclusiveWithFencing takes over at once: the owner loses its connection with its next message, waiting producers
    are refused (rule 3.2.3)."""

    async def test(wires: Wires) -> None:
        old, waiting, new = await wires.open(), await wires.open(), await wires.open()
        fenced = await take(old, "old", EXCLUSIVE)
        await fenced.publish(b"mine")
        command = await queue(waiting, "w")
        winner = await take(new, "new", FENCING)
        assert winner.opened.topic_epoch == 1
        error = await waiting.hear(c.CommandError, where=lambda answer: answer.request_id == command.request_id)
        assert (error.error, error.message.rpartition(" ")[0].rpartition(" ")[2]) == (
            ServerError.ProducerFenced,
            "Fenced",
        )
        assert not old.heard(c.CommandCloseProducer)
        fenced.send(b"too late")
        with pytest.raises(DisconnectedError):
            await fenced.receipt()
        await winner.publish(b"its own")
        assert wires.world.machine.broker.service.topics[T].log.end == 2

    on_broker(test)


def test_a_producer_that_comes_back_too_late_is_fenced() -> None:
    """A producer whose topic epoch is outdated is fenced (rules 3.2.5 and 3.2.6).

    Apache Pulsar lets a late ExclusiveWithFencing throw out the owner first; here the owner stays.
    """

    async def test(wires: Wires) -> None:
        first, second = await wires.open(), await wires.open()
        assert (await take(first, "a", EXCLUSIVE)).opened.topic_epoch == 0
        await first.close()
        assert (await take(second, "b", EXCLUSIVE)).opened.topic_epoch == 1
        await second.close()
        third = await wires.open()
        moved = refusal("ProducerFenced", "Topic epoch has already moved. Current epoch: 1, Producer epoch: 0")
        for mode in (EXCLUSIVE, FENCING, WAIT):
            with pytest.raises(RawClientError, match=moved):
                await take(third, "a", mode, topic_epoch=0)
        back = await take(third, "b", EXCLUSIVE, topic_epoch=1)
        assert back.opened.topic_epoch == 1
        with pytest.raises(RawClientError, match=moved):
            await take(third, "a", FENCING, topic_epoch=0)
        await back.publish(b"still here")
        await back.close()
        assert (await take(third, "c", EXCLUSIVE, topic_epoch=7)).opened.topic_epoch == 7

    on_broker(test)


def test_a_late_waiter_is_passed_over() -> None:
    async def test(wires: Wires) -> None:
        client = await wires.open()
        owner = await take(client, "a", EXCLUSIVE, topic_epoch=5)
        late, right = await queue(client, "late", topic_epoch=4), await queue(client, "right", topic_epoch=5)
        await owner.close()
        error = await client.hear(c.CommandError, where=lambda answer: answer.request_id == late.request_id)
        assert error.error is ServerError.ProducerFenced
        assert (await promoted(client, right)).topic_epoch == 5

    on_broker(test)


def test_the_epoch_outlives_power_loss_and_unload() -> None:
    """The topic epoch is durable: power loss and unloading keep it (rule 3.2.5)."""

    async def test(wires: Wires) -> None:
        client = await wires.open()
        for expected in range(3):
            producer = await take(client, "a", EXCLUSIVE)
            assert producer.opened.topic_epoch == expected
            await producer.close()
        wires.world.machine.broker.service.unload(TopicName.parse(T))
        assert (await take(client, "a", EXCLUSIVE)).opened.topic_epoch == 3
        wires.world.machine.power_off()
        await wires.world.machine.start()
        client = await wires.open()
        assert (await take(client, "b", EXCLUSIVE)).opened.topic_epoch == 4
        # a shared one receives the epoch, too
        assert (await client.producer(T + "2", "s")).opened.topic_epoch is None

    on_broker(test)


def test_unloading_a_topic_refuses_its_queue() -> None:
    async def test(wires: Wires) -> None:
        client = await wires.open()
        await take(client, "a", EXCLUSIVE)
        command = await queue(client, "w")
        wires.world.machine.broker.service.unload(TopicName.parse(T))
        error = await client.hear(c.CommandError, where=lambda answer: answer.request_id == command.request_id)
        assert error.error is ServerError.ServiceNotReady
        assert error.message.endswith("$TopicFencedException: Topic is temporarily unavailable")
        await client.hear(c.CommandCloseProducer)
        await take(client, "w", WAIT)

    on_broker(test)


def test_a_newcomer_is_fenced_before_its_own_epoch_is_durable() -> None:
    """Two requests at once are both answered, and one of them owns the topic."""

    async def test(wires: Wires) -> None:
        one, two = await wires.open(), await wires.open()
        first = c.CommandProducer(T, 1, one.new_id(), "a", producer_access_mode=FENCING)
        second = c.CommandProducer(T, 1, two.new_id(), "b", producer_access_mode=FENCING)
        await one.producer(T, "warm")
        one.say(first)
        two.say(second)
        answers: list[Any] = [await client.hear(c.CommandProducerSuccess, c.CommandError) for client in (one, two)]
        topic = wires.world.machine.broker.service.topics[T]
        assert len(topic.producers) == 1
        assert sum(isinstance(answer, c.CommandProducerSuccess) for answer in answers) >= 1
        epochs = [answer.topic_epoch for answer in answers if isinstance(answer, c.CommandProducerSuccess)]
        assert len(set(epochs)) == len(epochs)

    on_broker(test)


def test_limits() -> None:
    """Producers above the limits of a topic are refused (rule 3.1.6)."""

    async def test(wires: Wires) -> None:
        client = await wires.open()
        await client.producer(T, "a")
        await client.producer(T, "b")
        limited = f"ProducerBusy: .*ProducerBusyException: Topic '{T}' reached max producers limit"
        with pytest.raises(RawClientError, match=limited):
            await client.producer(T, "c")

    on_broker(test, maxProducersPerTopic=2)

    async def same(wires: Wires) -> None:
        client = await wires.open()
        await client.producer(T, "a")
        with pytest.raises(RawClientError, match="reached max same address producers limit"):
            await client.producer(T, "b")

    on_broker(same, maxSameAddressProducersPerTopic=1)
