"""The end of a topic on a disk: what was answered holds for ever, what the disk refused has not happened (4.7.1)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from magnetar.broker.topic.cleanup.termination import PROPERTY
from magnetar.model.errors import PersistenceError, TopicTerminatedError
from magnetar.model.ids import Position
from magnetar.model.subscription_types import SubType
from magnetar.testing.simloop import SimLoop, run_in
from tests.support.loaded_topic import LoadedTopic
from tests.support.topic_bench import OrdinalConnection


def simulated(scenario: Callable[[LoadedTopic], Awaitable[None]]) -> None:
    async def main() -> None:
        place = LoadedTopic()
        await place.durable()
        await scenario(place)
        place.topic.close()
        await place.store.close()

    run_in(SimLoop(1), main())


async def terminate(place: LoadedTopic) -> Position | PersistenceError:
    """The id of the last message, as an administrator is answered, or the refusal of the disk."""
    answer: asyncio.Future[PersistenceError | None] = asyncio.get_running_loop().create_future()
    place.topic.termination.terminate(lambda: answer.set_result(None), answer.set_result)
    return await answer or place.topic.termination.last


def open_to_producers(place: LoadedTopic) -> bool:
    try:
        place.topic.termination.check_producer()
    except TopicTerminatedError:
        return False
    return True


@pytest.mark.parametrize("again", ["restart", "kill"])
@pytest.mark.parametrize("entries", [0, 1, 25])
def test_the_last_id_is_the_answered_one_when_its_ledger_is_gone_and_the_broker_came_back(
    entries: int, again: str
) -> None:
    async def scenario(place: LoadedTopic) -> None:
        for i in range(entries):
            place.append("k", str(i))
        await place.durable()
        assert open_to_producers(place)
        log = place.topic.log
        wanted = log.position(entries - 1) if entries else Position(log.table.ledgers[-1].id, -1)
        assert await terminate(place) == wanted
        assert not open_to_producers(place)
        log.open_ledger()
        place.topic.trim()
        await place.durable()
        assert place.topic.termination.last == wanted
        for _ in range(2):
            await place.restart() if again == "restart" else place.kill()
            await place.durable()
            assert (place.topic.termination.last, open_to_producers(place)) == (wanted, False)
            assert await terminate(place) == wanted

    simulated(scenario)


def test_a_topic_that_the_disk_did_not_end_goes_on() -> None:
    """Also after a crash, and it ends when it is asked to once more."""

    async def scenario(place: LoadedTopic) -> None:
        place.append("k", "1")
        place.topic.create_subscription("s", 0)
        await place.durable()
        place.files.fail("sync")
        assert isinstance(await terminate(place), PersistenceError)
        assert open_to_producers(place)
        assert PROPERTY not in place.topic.log.properties
        assert not place.topic.subscriptions["s"].terminated
        await place.durable()
        place.kill()
        assert open_to_producers(place)
        wanted = place.topic.log.position(0)
        assert await terminate(place) == wanted
        assert place.topic.subscriptions["s"].terminated
        place.kill()
        assert (place.topic.termination.last, open_to_producers(place)) == (wanted, False)

    simulated(scenario)


def test_two_who_end_it_at_once_are_answered_the_same() -> None:
    async def scenario(place: LoadedTopic) -> None:
        place.append("k", "1")
        wanted = place.topic.log.position(0)
        assert set(await asyncio.gather(terminate(place), terminate(place))) == {wanted}

    simulated(scenario)


def test_who_was_told_of_the_end_is_not_told_otherwise_after_a_crash() -> None:
    """The answer to who asked for it comes later."""

    class Listener(OrdinalConnection):
        def end_of_topic(self) -> None:
            told.set()

    told = asyncio.Event()

    async def scenario(place: LoadedTopic) -> None:
        place.topic.create_subscription("s", 0)
        await place.durable()
        place.topic.subscriptions["s"].add_consumer(Listener(), name="c", consumer_id=1, sub_type=SubType.Shared)
        answered: list[object] = []
        place.topic.termination.terminate(lambda: answered.append(None), answered.append)
        await told.wait()
        assert not answered
        place.kill()
        assert not open_to_producers(place)

    simulated(scenario)


def test_a_topic_that_has_ended_stays_ended_where_the_disk_refuses_the_same_request_again() -> None:
    """The second request took the end back."""

    async def scenario(place: LoadedTopic) -> None:
        place.append("k", "1")
        place.topic.create_subscription("s", 0)
        wanted = await terminate(place)
        place.topic.subscriptions["s"].skip_until(0, lambda: None)  # there is something to be written again
        place.files.fail("sync")
        assert isinstance(await terminate(place), PersistenceError)
        assert not open_to_producers(place)
        await place.durable()
        place.kill()
        assert (place.topic.termination.last, open_to_producers(place)) == (wanted, False)

    simulated(scenario)


@pytest.mark.parametrize("refused", [False, True])
def test_who_comes_while_the_end_is_written_hears_of_it_when_it_is_durable(refused: bool) -> None:
    """Whether the subscription is new, loaded only now, or was there; and never if the disk refuses."""

    async def scenario(place: LoadedTopic) -> None:
        for name in ("known", "stored"):
            place.topic.create_subscription(name, 0)
        await place.durable()
        await place.restart()
        topic, connections = place.topic, {name: OrdinalConnection() for name in ("known", "stored", "new")}
        assert topic.subscriptions["known"].consumers == []
        if refused:
            place.files.fail("sync")
        answer = asyncio.ensure_future(terminate(place))
        await asyncio.sleep(0)
        for name, connection in connections.items():
            found = topic.subscription(name, durable=True, ordinal=lambda: 0, properties={}, done=lambda: None)
            consumer = found.add_consumer(connection, name="c", consumer_id=1, sub_type=SubType.Exclusive)
            found.flow(consumer, 10)
        assert [connection.ended for connection in connections.values()] == [0, 0, 0]
        assert isinstance(await answer, PersistenceError) == refused
        assert [connection.ended for connection in connections.values()] == [0, 0, 0] if refused else [1, 1, 1]
        assert {topic.subscriptions[name].terminated for name in connections} == {not refused}

    simulated(scenario)
