"""Every call of the native client, cancelled at every one of its awaits: nothing is lost, stuck, or acknowledged.

Each call is cut at its first await, its second and so on to its last, both before what it waits for and in the very
moment after; then the application goes on, and all that it may count on is there.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from magnetar.client.aio.client import Client
from magnetar.client.aio.client_transaction import ClientTransaction
from magnetar.client.aio.consumers.consumer import Consumer
from magnetar.client.aio.consumers.original import Original
from magnetar.client.errors import ClientError
from magnetar.client.machines.message import Message
from magnetar.client.machines.message_id import MessageId
from magnetar.config.settings import Settings
from magnetar.protocol.commands import InitialPosition, ProducerAccessMode, SubType
from magnetar.testing.broker import HOST, PORT
from magnetar.testing.simloop import SimClock
from tests.sim.cancelled_call import NOTHING, CancelledCall, Scenario, at_every_await
from tests.sim.world import T, World

S = "sub"
OUT = "persistent://public/default/out"
ALL = list(range(6))
SETTINGS = Settings(transactionCoordinatorEnabled=True, acknowledgmentAtBatchIndexLevelEnabled=True)


def new_client(world: World) -> Client:
    url = f"pulsar://{HOST}:{PORT}"
    return Client(url, operation_timeout_seconds=20, clock=SimClock(world.loop), rng=world.rng)


async def published(client: Client, **options: Any) -> None:
    """Publish all numbers in two batches."""
    async with await client.create_producer(T, batching_enabled=True, batching_max_messages=3, **options) as producer:
        await asyncio.gather(*(producer.send(b"%d" % number, partition_key=f"k{number % 2}") for number in ALL))


async def keep(client: Client) -> None:
    """Subscribe, so that messages are kept."""
    await (await client.subscribe(T, S, SubType.Shared)).close()


async def subscribed(client: Client, kind: SubType = SubType.Exclusive, **options: Any) -> Consumer:
    return await client.subscribe(
        T, S, kind, initial_position=InitialPosition.Earliest, batch_index_ack_enabled=True, **options
    )


async def received(consumer: Consumer, count: int) -> list[int]:
    return [int((await consumer.receive(10_000)).data()) for _ in range(count)]


async def left(world: World, kind: SubType = SubType.Exclusive, **options: Any) -> list[int]:
    """What the next consumer gets, in order."""
    found: list[int] = []
    async with new_client(world) as client:
        consumer = await subscribed(client, kind, **options)
        while True:
            try:
                found.append(int((await consumer.receive(3_000)).data()))
            except ClientError:
                return found


async def stored(world: World, topic: str = T) -> list[int]:
    async with new_client(world) as client:
        reader = await client.create_reader(topic, MessageId.earliest)
        found: list[int] = []
        while await reader.has_message_available():
            found.append(int((await reader.read_next(10_000)).data()))
        return found


def sending(*, batching: bool) -> Scenario:
    """A message that waits for room, then for its receipt; those around it are stored, in order."""

    async def send(world: World, cut: CancelledCall) -> None:
        async with new_client(world) as client:
            await (await client.subscribe(T, S)).close()
            producer = await client.create_producer(
                T, send_timeout_millis=0, max_pending_messages=2, block_if_queue_full=True, batching_enabled=batching
            )
            before = [world.loop.create_task(producer.send(b"%d" % number)) for number in (0, 1)]
            await asyncio.sleep(0)
            sent = await cut.of(producer.send(b"2"))
            await producer.send(b"3")
            await asyncio.gather(*before)
            await producer.close()
        found = await stored(world)
        assert found == [0, 1, 2, 3] or (sent is NOTHING and found == [0, 1, 3]), found

    return send


def closing_producer(of: str) -> Scenario:
    """Receipts that came are true, and the producer's name is free."""

    async def close(world: World, cut: CancelledCall) -> None:
        client = new_client(world)
        await (await client.subscribe(T, S)).close()
        producer = await client.create_producer(T, "name", batching_enabled=True, batching_max_publish_delay_ms=50)
        receipts = [producer.send_nowait(b"%d" % number) for number in ALL]
        calls = {"close": producer.close, "flush": producer.flush, "client": client.close}
        await cut.of(calls[of]())
        if of == "flush":
            await producer.flush()
        await producer.close()
        await client.close()
        confirmed = []
        for number, receipt in enumerate(receipts):
            try:
                await receipt
                confirmed.append(number)
            except (ClientError, asyncio.CancelledError):
                pass
        assert of != "flush" or confirmed == ALL
        assert set(confirmed) <= set(found := await stored(world)), (confirmed, found)
        assert found == sorted(set(found))
        async with new_client(world) as again:
            await again.create_producer(T, "name")

    return close


def opening(kind: str) -> Scenario:
    """What was half open is in nobody's way."""

    async def open_it(world: World, cut: CancelledCall) -> None:
        async with new_client(world) as client:

            def call() -> Any:
                if kind == "producer":
                    return client.create_producer(T, access_mode=ProducerAccessMode.Exclusive)
                if kind == "reader":
                    return client.create_reader(T, MessageId.earliest, subscription_name=S)
                return client.subscribe(T, S)

            opened = await cut.of(call())
            if opened is NOTHING:
                opened = await asyncio.wait_for(call(), 60)
            await opened.close()  # type: ignore[attr-defined]  # of either kind
            await (await call()).close()

    return open_it


def receiving(how: str, *, early: bool, queue: int = 1_000) -> Scenario:
    """Every message comes once and in order, those of the cancelled call with the next. ``early``: before they come."""

    async def receive(world: World, cut: CancelledCall) -> None:
        async with new_client(world) as client:
            await keep(client)
            consumer = await subscribed(client, SubType.Exclusive, receiver_queue_size=queue)
            publishing = world.loop.create_task(published(client))
            if not early:
                await publishing
                await asyncio.sleep(1.0)
            got = _numbers(await cut.of(_taken(consumer, how)))
            while len(got) < len(ALL):
                got += _numbers(await _taken(consumer, how))
            assert got == ALL, got
            await publishing

    return receive


async def _taken(consumer: Consumer, how: str) -> object:
    if how == "receive":
        return [await consumer.receive(10_000)]
    if how == "batch_receive":
        return await consumer.batch_receive(4, 10_000)
    return await consumer.receive_table(4, 10.0)


def _numbers(given: Any) -> list[int]:
    if given is NOTHING:
        return []
    if isinstance(given, list):
        return [int(one.data()) for one in given]
    return [int(value) for value in given.column("__value" if "__value" in given.column_names else 0).to_pylist()]


def settling(name: str) -> Scenario:
    """Of the third of six messages; nothing but what was asked for is acknowledged."""

    async def settle(world: World, cut: CancelledCall) -> None:
        async with new_client(world) as client:
            await keep(client)
            await published(client)
            cumulative = name == "acknowledge_cumulative"
            consumer = await subscribed(
                client, SubType.Exclusive if cumulative else SubType.Shared, ack_receipt_enabled=True,
                negative_ack_redelivery_delay_ms=200, retry_enable=not cumulative,
            )  # fmt: skip
            messages = [await consumer.receive(10_000) for _ in ALL]
            third = next(one for one in messages if one.data() == b"2")
            done = await cut.of(getattr(consumer, name)(third)) is not NOTHING
            await consumer.close()
        found = sorted(await left(world, consumer.options.sub_type, retry_enable=not cumulative))
        gone = {"acknowledge": [2], "acknowledge_cumulative": [0, 1, 2]}.get(name, [])
        without = [number for number in ALL if number not in gone]
        if name == "reconsume_later":
            assert sorted(set(found)) == ALL, found
        else:
            assert found == without or (not done and found == ALL), found

    return settle


async def seeking(world: World, cut: CancelledCall) -> None:
    """The consumer goes on, and the next seek counts."""
    async with new_client(world) as client:
        await keep(client)
        await published(client)
        consumer = await subscribed(client)
        assert await received(consumer, 6) == ALL
        done = await cut.of(consumer.seek(MessageId.earliest)) is not NOTHING
        if done:
            assert await received(consumer, 6) == ALL
        await consumer.seek(MessageId.earliest)
        assert await received(consumer, 6) == ALL


def closing_consumer(*, letters: bool) -> Scenario:
    """What was acknowledged before stays so, the rest comes to the next."""

    async def close(world: World, cut: CancelledCall) -> None:
        async with new_client(world) as client:
            await keep(client)
            await published(client)
            consumer = await subscribed(client, retry_enable=letters)
            for _ in range(3):
                await consumer.acknowledge(await consumer.receive(10_000))
            if letters:
                await consumer.reconsume_later(await consumer.receive(10_000))
            await cut.of(consumer.close())
            await consumer.close()
            rest = ALL[4:] if letters else ALL[3:]
            assert await received(await subscribed(client), len(rest)) == rest

    return close


async def handling(world: World, cut: CancelledCall) -> None:
    """What a handler finished is acknowledged or comes again, everything else comes again."""
    done: list[int] = []

    async def handle(message: Message) -> None:
        await asyncio.sleep(0.01)
        done.append(int(message.data()))

    async with new_client(world) as client:
        await keep(client)
        await published(client)
        consumer = await subscribed(client, SubType.Key_Shared)
        world.loop.call_later(0.5, consumer.stop)
        await cut.of(consumer.run(handle, concurrency=2))
        await consumer.close()
    assert set(done) | set(await left(world, SubType.Key_Shared)) == set(ALL)


async def handling_in_transactions(world: World, cut: CancelledCall) -> None:
    """What is published for each input is there once."""

    async def life(client: Client, call: Callable[[Any], Any]) -> None:
        producer = await client.create_producer(OUT, send_timeout_millis=0, txn_enabled=True)
        consumer = await subscribed(client, SubType.Shared)

        async def handle(batch: Sequence[Message], txn: ClientTransaction) -> None:
            await asyncio.gather(*(producer.send(message.data(), txn=txn) for message in batch))

        world.loop.call_later(2.0, consumer.stop)
        await call(consumer.run_in_transactions(client, handle, messages=4))

    async with new_client(world) as client:
        await (await client.subscribe(OUT, "keeps")).close()
        await keep(client)
        await published(client)
        await life(client, cut.of)
    for _ in range(3):
        await asyncio.sleep(70)  # what was left open times out
        async with new_client(world) as client:
            await asyncio.wait_for(life(client, asyncio.ensure_future), 600)
    assert Counter(await stored(world, OUT)) == Counter(ALL)


async def in_a_transaction(world: World, cut: CancelledCall) -> None:
    """All of it counts, or nothing."""

    async def everything(client: Client, messages: Sequence[Message], consumer: Consumer) -> None:
        producer = await client.create_producer(OUT, send_timeout_millis=0, txn_enabled=True)
        async with await client.new_transaction(timeout_seconds=5) as txn:
            for message in messages:
                await producer.send(message.data(), txn=txn)
                await consumer.acknowledge(message, txn=txn)

    async with new_client(world) as client:
        await (await client.subscribe(OUT, "keeps")).close()
        await keep(client)
        await published(client)
        consumer = await subscribed(client, SubType.Shared)
        messages = [await consumer.receive(10_000) for _ in range(3)]
        done = await cut.of(everything(client, messages, consumer)) is not NOTHING
    await asyncio.sleep(30)
    out, rest = sorted(await stored(world, OUT)), sorted(await left(world, SubType.Shared))
    assert (out, rest) == (ALL[:3], ALL[3:]) or (not done and (out, rest) == ([], ALL)), (out, rest)


SCENARIOS: dict[str, Scenario] = {
    "send": sending(batching=False),
    "send, batched": sending(batching=True),
    "flush": closing_producer("flush"),
    "close a producer": closing_producer("close"),
    "close a client": closing_producer("client"),
    **{f"open a {kind}": opening(kind) for kind in ("producer", "consumer", "reader")},
    **{
        f"{how}, {'empty' if early else 'filled'}": receiving(how, early=early)
        for how in ("receive", "batch_receive", "receive_table") for early in (False, True)
    },
    **{
        f"receive, {'empty' if early else 'filled'}, of {queue}": receiving("receive", early=early, queue=queue)
        for queue in (0, 1) for early in (False, True)
    },
    **{
        name: settling(name)
        for name in ("acknowledge", "acknowledge_cumulative", "negative_acknowledge", "reconsume_later")
    },
    "seek": seeking,
    "close a consumer": closing_consumer(letters=False),
    "close a consumer with letters": closing_consumer(letters=True),
    "run": handling,
    "run_in_transactions": handling_in_transactions,
    "a transaction": in_a_transaction,
}  # fmt: skip


@pytest.mark.parametrize("name", SCENARIOS)
def test_nothing_is_lost_whichever_await_is_cancelled(name: str) -> None:
    at_every_await(SCENARIOS[name], settings=SETTINGS)


def test_a_receive_that_waits_with_a_message_in_its_hand_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Consumer.receive

    async def careless(self: Consumer, timeout_millis: int | None = None) -> Message:
        message = await whole(self, timeout_millis)
        await asyncio.sleep(0)
        return message

    monkeypatch.setattr(Consumer, "receive", careless)
    with pytest.raises(AssertionError, match="cancelled at await"):
        at_every_await(SCENARIOS["receive, filled"], settings=SETTINGS)


def test_a_copy_that_is_acknowledged_before_it_is_stored_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def hasty(self: Original, posting: Any) -> None:
        self._acknowledge(self.source, self.message)
        await posting

    monkeypatch.setattr(Original, "copied", hasty)
    with pytest.raises(AssertionError, match="cancelled at await"):
        at_every_await(SCENARIOS["reconsume_later"], settings=SETTINGS)
