"""Handles of the blocking client that nobody closes, and what is interrupted half-way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import pytest

import magnetar
from magnetar import aio
from magnetar.client.blocking.hand_over import HandOver
from magnetar.client.blocking.loop_thread import LoopThread
from magnetar.client.blocking.reader import _SAY_EVERY, Reader
from magnetar.client.blocking.send_queue import SendQueue
from magnetar.client.machines.message_id import MessageId
from magnetar.testing import PulsarBroker


@pytest.fixture
def broker() -> Iterator[PulsarBroker]:
    with PulsarBroker() as broker:
        yield broker


def test_what_nobody_has_any_more_is_closed_while_the_client_lives(broker: PulsarBroker) -> None:
    with broker.client() as client:
        client.create_producer("t", "name").send(b"1")
        client.subscribe("t", "s", initial_position=aio.InitialPosition.Earliest)  # Exclusive
        client.create_reader("t", MessageId.earliest)
        client.create_table_view("t")
        broker.clock.settle()
        topic = broker.topic("t")
        assert not topic.producers()
        assert [(one.name, one.consumers) for one in topic.subscriptions().values()] == [("s", ())]
        consumer = client.subscribe("t", "s")
        message = consumer.receive(10_000)
        assert message.data() == b"1"
        del consumer
        with pytest.raises(magnetar.AlreadyClosed, match="its consumer is gone"), message:
            pass
        assert client.create_producer("t", "name").send(b"2").entry_id() >= 0


def test_a_topic_that_was_taken_for_one_producer_stays_taken(broker: PulsarBroker) -> None:
    """Otherwise the next program would get it, and none would know; the client's end gives it back."""
    exclusive = magnetar.ProducerAccessMode.Exclusive
    with broker.client() as client:
        client.create_producer("t", "first", access_mode=exclusive)
        broker.clock.settle()
        with pytest.raises(magnetar.ProducerFenced):
            client.create_producer("t", "second", access_mode=exclusive)
    with broker.client() as client:
        assert client.create_producer("t", "second", access_mode=exclusive).send(b"1").entry_id() >= 0


def test_what_was_sent_before_its_producer_was_dropped_is_stored(broker: PulsarBroker) -> None:
    with broker.client() as client:
        heard: list[object] = []
        client.create_producer("t", batching_enabled=True).send_async(b"1", lambda *fate: heard.append(fate[0]))
        broker.topic("t").expect(1)
        broker.clock.settle()
        assert heard == [magnetar.Result.Ok]


def test_a_call_that_fails_leaves_those_after_it() -> None:
    thread = LoopThread("test")
    done: list[int] = []

    async def nothing() -> None:
        pass

    def fail() -> None:
        raise RuntimeError("wrong")

    try:
        with mock.patch.object(thread, "_woken", new=True):
            thread.post(fail)
            thread.post(lambda: done.append(1))
        thread.post(lambda: done.append(2))
        thread.run(nothing())
        assert done == [1, 2]
    finally:
        thread.stop()


class _Thread:
    """A loop thread on which everything handed over is interrupted, once it is told so."""

    def __init__(self) -> None:
        self.interrupts = False
        self.loop = mock.MagicMock()
        self.refusal, self.inside, self.ended = None, False, False

    def post(self, _call: Callable[[], object]) -> None:
        if self.interrupts:
            raise KeyboardInterrupt

    def check(self) -> None: ...
    def gives_up_with(self, _giver: object) -> None: ...
    def closes_with(self, _facade: object, _handle: object) -> None: ...


def test_a_reader_that_is_interrupted_when_it_tells_the_loop_loses_no_message() -> None:
    thread: Any = _Thread()
    reader: Reader = Reader(thread, mock.MagicMock())
    messages: list[Any] = [mock.MagicMock(name=str(number)) for number in range(_SAY_EVERY + 3)]
    reader._hand_over._at_hand = messages[::-1]
    found = [reader.read_next() for _ in range(_SAY_EVERY - 1)]
    thread.interrupts = True
    for _ in range(3):
        try:
            found.append(reader.read_next())
        except KeyboardInterrupt:
            thread.interrupts = False
    assert found == messages[: len(found)] and len(found) == _SAY_EVERY + 1


def test_what_an_interrupted_thread_has_taken_comes_before_what_was_lent_meanwhile() -> None:
    """The interrupt came after the loop had been woken up, which lends the next messages before they are asked for."""
    thread: Any = _Thread()
    hand_over = HandOver(thread, mock.MagicMock())
    first, second = mock.MagicMock(), mock.MagicMock()
    hand_over._at_hand = [first]
    thread.interrupts = True
    with pytest.raises(KeyboardInterrupt):
        hand_over.take(None)
    thread.interrupts = False
    hand_over._at_hand = [second]
    assert [hand_over.take(None), hand_over.take(None)] == [first, second]


def test_what_an_interrupted_thread_has_taken_does_not_come_after_a_seek() -> None:
    thread: Any = _Thread()
    hand_over = HandOver(thread, mock.MagicMock())
    hand_over._at_hand = [mock.MagicMock()]
    thread.interrupts = True
    with pytest.raises(KeyboardInterrupt):
        hand_over.take(None)
    assert hand_over.lends
    hand_over.moved()
    assert not hand_over.lends


def test_whoever_waits_for_room_is_let_in_although_others_keep_the_queue_more_than_half_full() -> None:
    producer = mock.MagicMock()
    producer.options.block_if_queue_full, producer.options.limits.pending_messages = True, 10
    thread: Any = _Thread()
    queue = SendQueue(thread, producer)
    for _ in range(10):
        queue._sent += 1
    waiter = mock.MagicMock()
    queue._room.append(waiter)
    queue.count_fates(1)
    queue.count_fates(1)
    ((_, look), _) = thread.loop.call_later.call_args
    assert thread.loop.call_later.call_count == 1 and not waiter.release.called
    look()
    assert waiter.release.called
