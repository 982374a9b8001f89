"""What becomes of each message that a handler gets, whatever the handler does and whenever the run ends."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

import pytest
from typing_extensions import override

from magnetar.client.aio.client_transaction import ClientTransaction
from magnetar.client.aio.handlers.handler_host import HandlerHost
from magnetar.client.aio.handlers.outcome import Outcome, Reject, RejectedMessageError, Retry, RunReport
from magnetar.client.errors import AlreadyClosedError, ClientError
from magnetar.client.machines.message import Envelope, Message
from magnetar.client.machines.outgoing.outgoing_message import EntryMaker, OutgoingMessage
from magnetar.model.errors import InvalidValueError
from magnetar.protocol.entries import EntryMetadata, metadata_of
from magnetar.testing.simloop import SimLoop, run_in


def metadata(key: str | None) -> EntryMetadata:
    return metadata_of(EntryMaker("p").single(OutgoingMessage(b"", (), key), 0, 0))


class Topic(HandlerHost):
    """A consumer of numbers, with a key each; what comes again is received again."""

    def __init__(self, *keys: str | None, dead_letters: bool = True) -> None:
        self.queue = deque(self._message(number, key) for number, key in enumerate(keys))
        self.acknowledged: list[int] = []
        self.again: list[tuple[int, float | None]] = []
        self.dead: list[tuple[int, str]] = []
        self.dead_letters = dead_letters
        self.closed = False
        self._came = asyncio.Event()

    def _message(self, number: int, key: str | None) -> Message:
        return Message(Envelope("t", -1, (1, number), metadata(key), 0, 0, None), b"%d" % number, -1, None)

    @override
    def topic(self) -> str:
        return "t"

    @override
    def receive_nowait(self) -> Message | None:
        if self.closed:
            raise AlreadyClosedError("t: the consumer is closed")
        return self.queue.popleft() if self.queue else None

    @override
    async def receive(self, timeout_millis: int | None = None) -> Message:
        while (message := self.receive_nowait()) is None:
            self._came.clear()
            await self._came.wait()
        return message

    @override
    async def acknowledge(self, message: Message, *, txn: ClientTransaction | None = None) -> None:
        self.acknowledged.append(int(message.data()))

    @override
    async def negative_acknowledge(self, message: Message, delay: Any = None, *, error: Any = None) -> None:
        self.again.append((int(message.data()), None))
        asyncio.get_running_loop().call_later(1.0, self.add, message)

    @override
    def redeliver(self, message: Message, after: float = 0.0) -> None:
        self.again.append((int(message.data()), after))
        if after > 0:
            asyncio.get_running_loop().call_later(after, self.add, message)

    def add(self, message: Message) -> None:
        self.queue.append(message)
        self._came.set()

    @override
    async def reject(self, message: Message, reason: str, cause: BaseException | None = None) -> bool:
        if self.dead_letters:
            self.dead.append((int(message.data()), reason))
        return self.dead_letters


Scenario = Callable[[], Coroutine[None, None, None]]


def virtual(scenario: Scenario) -> Callable[[], None]:
    """A test of a scenario in virtual time."""

    def test() -> None:
        run_in(SimLoop(1, limit_s=100_000.0), scenario())

    test.__doc__ = scenario.__doc__
    return test


async def stopped_after(topic: Topic, seconds: float, run: Coroutine[None, None, RunReport]) -> RunReport:
    asyncio.get_running_loop().call_later(seconds, topic.stop)
    return await run


@virtual
async def test_order_and_concurrency() -> None:
    """Two keys are handled beside each other, and each key's messages in their order."""
    topic = Topic("a", "b", "a", "b", None)
    now = asyncio.get_running_loop().time
    seen: list[tuple[str, float]] = []

    async def handle(message: Message) -> None:
        seen.append((message.data().decode(), now()))
        await asyncio.sleep(1)

    begin = now()
    report = await stopped_after(topic, 10, topic.run(handle, concurrency=2, in_hand=5))
    assert [(number, round(at - begin)) for number, at in seen] == [("0", 0), ("1", 0), ("4", 1), ("2", 1), ("3", 2)]
    assert sorted(topic.acknowledged) == [0, 1, 2, 3, 4] and report == RunReport(handled=5)


@virtual
async def test_retries_keep_the_order_of_a_key() -> None:
    """A message that is to be tried later holds up its key alone, and comes before the next one of it."""
    topic = Topic("a", "a", "b")
    seen: list[int] = []

    async def handle(message: Message) -> Outcome:
        seen.append(int(message.data()))
        return Retry(timedelta(seconds=5)) if seen.count(0) < 3 and message.data() == b"0" else None

    report = await stopped_after(topic, 30, topic.run(handle, concurrency=3))
    assert seen == [0, 2, 0, 0, 1]
    assert topic.again == [] and report == RunReport(handled=3, retried=2)


@virtual
async def test_retries_without_order_go_to_the_broker() -> None:
    """Without an order of keys the broker has the message come again, perhaps to another consumer."""
    topic = Topic("a", "a")
    seen: list[int] = []

    async def handle(message: Message) -> None:
        seen.append(int(message.data()))
        if seen == [0]:
            raise Retry(7)
        if seen == [0, 1]:
            raise ValueError("as handlers fail")

    report = await stopped_after(topic, 30, topic.run(handle, per_key_order=False))
    assert topic.again == [(0, 7), (1, None)]
    assert seen == [0, 1, 1, 0] and report == RunReport(handled=2, retried=2)


@virtual
async def test_failures_come_again_and_are_rejected_in_the_end() -> None:
    """A handler's errors are counted; the last one stands in the reason."""
    topic = Topic("a", "a")

    async def handle(message: Message) -> None:
        if message.data() == b"0":
            raise ValueError("no such customer")

    report = await stopped_after(topic, 60, topic.run(handle, attempts=3))
    assert topic.dead == [(0, "handled 3 times without success: ValueError('no such customer')")]
    assert topic.acknowledged == [1] and report == RunReport(handled=1, retried=2, rejected=1)


@virtual
async def test_a_rejection_without_a_dead_letter_topic_ends_the_run() -> None:
    """Nothing is dropped silently: the message stays, and the run says what to do."""
    topic = Topic("a", "b", dead_letters=False)

    async def handle(message: Message) -> Outcome:
        return Reject("is no order") if message.data() == b"0" else None

    with pytest.raises(RejectedMessageError, match=r"rejected \(is no order\).*dead_letter_policy"):
        await topic.run(handle)
    assert (0, 0.0) in topic.again and 0 not in topic.acknowledged


@virtual
async def test_the_end() -> None:
    """What has begun may end in time; what has not, what is held and what takes too long comes again."""
    topic = Topic("quick", "slow", "held", "quick", "late")

    async def handle(message: Message) -> Outcome:
        if message.data() == b"2":
            return Retry(1000)
        await asyncio.sleep({b"0": 5.0, b"1": 100.0}.get(message.data(), 0.0))
        return None

    report = await stopped_after(topic, 1, topic.run(handle, concurrency=3, drain_seconds=10))
    assert topic.acknowledged == [0, 4] or topic.acknowledged == [4, 0]
    assert sorted(number for number, _ in topic.again) == [1, 2, 3]
    assert report == RunReport(handled=2, retried=1, given_back=3)


@virtual
async def test_cancelled() -> None:
    """A cancelled run cancels its handlers at once, and gives everything back."""
    topic = Topic("a", "b", "b")
    ended: list[str] = []

    async def handle(_: Message) -> None:
        try:
            await asyncio.sleep(100)
        finally:
            ended.append("cancelled")

    run = asyncio.get_running_loop().create_task(topic.run(handle, concurrency=2))
    await asyncio.sleep(1)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert ended == ["cancelled"] * 2 and topic.acknowledged == []
    assert sorted(number for number, _ in topic.again) == [0, 1, 2]
    await topic_is_free(topic)


async def topic_is_free(topic: Topic) -> None:
    """Another run may begin."""
    await stopped_after(topic, 1, topic.run(lambda _: None))


@virtual
async def test_nothing_is_received_that_cannot_be_handled() -> None:
    """While as many messages are at hand as may be, the rest stays with the broker."""
    topic = Topic(*("a",) * 50)

    async def handle(_: Message) -> None:
        await asyncio.sleep(100)

    run = asyncio.get_running_loop().create_task(topic.run(handle, concurrency=2, in_hand=7))
    await asyncio.sleep(1)
    assert len(topic.queue) == 43
    run.cancel()
    await asyncio.wait([run])


@virtual
async def test_what_comes_twice_is_handled_once() -> None:
    """After a lost connection the broker delivers again what is being handled."""
    topic = Topic("a")
    handled: list[int] = []

    async def handle(message: Message) -> None:
        handled.append(int(message.data()))
        topic.add(message)
        await asyncio.sleep(3)

    await stopped_after(topic, 2, topic.run(handle))
    assert handled == [0] and topic.acknowledged == [0]


@virtual
async def test_the_end_of_the_consumer() -> None:
    """A consumer that is closed ends the run with the reason, after what has begun."""
    topic = Topic("a")

    async def handle(_: Message) -> None:
        topic.closed = True
        topic._came.set()
        await asyncio.sleep(3)

    with pytest.raises(AlreadyClosedError):
        await topic.run(handle, in_hand=2)
    assert topic.acknowledged == [0]


@virtual
async def test_wrong_answers_and_options() -> None:
    """A handler that returns something else, and numbers that make no sense, are refused."""
    topic = Topic("a")
    with pytest.raises(InvalidValueError, match="from 1 to"):
        await topic.run(lambda _: None, concurrency=0)
    with pytest.raises(InvalidValueError, match="below concurrency"):
        await topic.run(lambda _: None, concurrency=4, in_hand=3)
    with pytest.raises(InvalidValueError, match="attempts: a whole number from 0"):
        await topic.run(lambda _: None, attempts=-1)
    with pytest.raises(InvalidValueError, match="a number of seconds from 0"):
        Retry(float("nan"))

    async def wrong(_: Message) -> Outcome:
        return True  # type: ignore[return-value]

    report = await stopped_after(topic, 0.5, topic.run(wrong))
    assert topic.acknowledged == [] and report.retried == 1 and report.given_back == 1


@virtual
async def test_one_run_at_a_time() -> None:
    """A second run over the same consumer is refused, and disturbs nothing."""
    topic = Topic("a")

    async def handle(_: Message) -> None:
        with pytest.raises(ClientError, match="already"):
            await topic.run(handle)
        topic.stop()

    assert (await topic.run(handle)).handled == 1
    topic.stop()


def test_a_function_that_blocks_has_a_thread() -> None:
    """A handler that is no coroutine function holds nobody up."""
    seen: list[str] = []

    async def main() -> None:
        topic = Topic("a", "b")

        def handle(message: Message) -> Outcome:
            seen.append(threading.current_thread().name)
            if message.data() == b"1":
                asyncio.run_coroutine_threadsafe(_stop(topic), loop)
            return None

        loop = asyncio.get_running_loop()
        assert (await topic.run(handle)).handled == 2

    asyncio.run(main())
    assert all(name.startswith("magnetar-handler") for name in seen) and len(seen) == 2


async def _stop(topic: Topic) -> None:
    topic.stop()


@virtual
async def test_one_message_in_a_block() -> None:
    """``async with message:`` acknowledges at its end, and has the message come again after an error or as asked."""
    topic = Topic("a", "b", "c", "d")
    for message in topic.queue:
        message.envelope.owner = topic
    async with await topic.receive():
        pass
    with pytest.raises(ValueError, match="as handlers fail"):
        async with await topic.receive():
            raise ValueError("as handlers fail")
    async with await topic.receive():
        raise Retry(3)
    async with await topic.receive():
        raise Reject("is no order")
    assert (topic.acknowledged, topic.again, topic.dead) == ([0], [(1, None), (2, 3.0)], [(3, "is no order")])
    topic.dead_letters = False
    with pytest.raises(RejectedMessageError):
        async with await topic.receive():
            raise Reject("is no order")
    with pytest.raises(ClientError, match="async with"), await topic.receive():
        pass
    lonely = topic._message(9, None)
    with pytest.raises(ClientError, match="was not received"):
        async with lonely:
            pass
