"""The native client at a real broker: subscriptions, patterns, seek, access modes, transactions, logins, refusals."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from magnetar import aio
from magnetar.client.rest import Rest
from tests.support.live_broker import LiveBroker, free_port, live_broker
from tests.support.secured_broker import secured_broker

Body = Callable[[aio.Client], Awaitable[None]]
EARLIEST = aio.InitialPosition.Earliest


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveBroker]:
    settings = {"transactionCoordinatorEnabled": "true", "acknowledgmentAtBatchIndexLevelEnabled": "true"}
    with live_broker(tmp_path_factory.mktemp("native"), webServicePort=free_port(), **settings) as started:
        yield started


def run(url: str, body: Body) -> None:
    async def main() -> None:
        async with asyncio.timeout(30), aio.Client(url) as client:
            await body(client)

    asyncio.run(main())


async def numbers(consumer: aio.Consumer | aio.Reader, count: int) -> list[int]:
    take = consumer.receive if isinstance(consumer, aio.Consumer) else consumer.read_next
    return [int((await take(10_000)).data()) for _ in range(count)]


async def publish(client: aio.Client, topic: str, count: int, **options: bool) -> list[aio.MessageId]:
    async with await client.create_producer(topic, **options) as producer:  # type: ignore[arg-type]  # of all options
        return await asyncio.gather(*(producer.send(b"%d" % number) for number in range(count)))


def test_patterns_follow_the_topics(broker: LiveBroker) -> None:
    """Topics that appear are subscribed (rules 6.8.2, 6.8.3)."""

    async def body(client: aio.Client) -> None:
        await publish(client, "pattern-a", 2)
        await publish(client, "other", 1)
        consumer = await client.subscribe(
            re.compile("persistent://public/default/pattern-.*"), "s", initial_position=EARLIEST,
            pattern_auto_discovery_period=1,
        )  # fmt: skip
        assert await numbers(consumer, 2) == [0, 1]
        await publish(client, "pattern-b", 1)
        message = await consumer.receive(10_000)
        assert message.topic_name() == "persistent://public/default/pattern-b"
        await consumer.acknowledge(message)

    run(broker.url, body)


def test_a_queue_of_none_fetches_one_at_a_time(broker: LiveBroker) -> None:
    """Another consumer gets the rest (rule 6.1.2)."""

    async def body(client: aio.Client) -> None:
        shared = aio.ConsumerType.Shared
        greedy = await client.subscribe("none", "s", shared, receiver_queue_size=0, initial_position=EARLIEST)
        await publish(client, "none", 6)
        assert await numbers(greedy, 1) == [0]
        other = await client.subscribe("none", "s", shared)
        assert sorted(await numbers(other, 5)) == [1, 2, 3, 4, 5]

    run(broker.url, body)


def test_seek_and_batch_indexes(broker: LiveBroker) -> None:
    """Into a batch, to a time, to the ends; acknowledged messages of a batch do not come again (rules 5.9.1, 5.9.6)."""

    async def body(client: aio.Client) -> None:
        consumer = await client.subscribe("seek", "s", initial_position=EARLIEST, batch_index_ack_enabled=True)
        ids = await publish(client, "seek", 5, batching_enabled=True)
        await asyncio.sleep(0.05)
        later = int(time.time() * 1000)
        await asyncio.sleep(0.05)
        await publish(client, "seek", 2)
        found = [await consumer.receive(10_000) for _ in range(7)]
        await consumer.acknowledge(found[1])
        await consumer.acknowledge(found[3])
        await consumer.close()
        consumer = await client.subscribe("seek", "s", batch_index_ack_enabled=True, start_message_id_inclusive=True)
        assert await numbers(consumer, 5) == [0, 2, 4, 0, 1]
        await consumer.seek(ids[3])
        assert await numbers(consumer, 4) == [3, 4, 0, 1]
        await consumer.seek(aio.MessageId(-1, ids[3].ledger_id(), ids[3].entry_id(), 3))
        assert await numbers(consumer, 4) == [3, 4, 0, 1]
        await consumer.seek(later)
        assert await numbers(consumer, 2) == [0, 1]
        await consumer.seek(aio.MessageId.latest)
        with pytest.raises(aio.ClientTimeoutError):
            await consumer.receive(100)
        reader = await client.create_reader("seek", ids[2])
        assert await numbers(reader, 4) == [3, 4, 0, 1]
        inclusive = await client.create_reader("seek", ids[2], start_message_id_inclusive=True)
        assert await numbers(inclusive, 1) == [2]

    run(broker.url, body)


@pytest.mark.parametrize("inclusive", [False, True])
def test_a_seek_goes_on_after_the_message_or_with_it(broker: LiveBroker, inclusive: bool) -> None:
    """In batches, alone and by ids made by hand, of consumers and readers (rule 5.9.1)."""
    topic = f"seek-{inclusive}"

    async def body(client: aio.Client) -> None:
        consumer = await client.subscribe(topic, "s", start_message_id_inclusive=inclusive)
        reader = await client.create_reader(topic, aio.MessageId.latest, start_message_id_inclusive=inclusive)
        ids = await publish(client, topic, 4, batching_enabled=True)
        alone = [one for _ in range(3) for one in await publish(client, topic, 1)]
        by_hand = aio.MessageId(-1, alone[0].ledger_id(), alone[0].entry_id())
        in_batch = aio.MessageId(-1, ids[1].ledger_id(), ids[1].entry_id(), 1)
        stored = [0, 1, 2, 3, 0, 0, 0]
        for place, at in ((ids[0], 0), (ids[2], 2), (ids[3], 3), (in_batch, 1), (alone[0], 4), (by_hand, 4)):
            rest = stored[at + (not inclusive) :]
            await consumer.seek(place)
            assert await numbers(consumer, len(rest)) == rest, place
            await reader.seek(place)
            assert await reader.has_message_available()
            assert await numbers(reader, len(rest)) == rest, place
            assert not await reader.has_message_available()
        await reader.seek(alone[-1])
        assert await reader.has_message_available() is inclusive
        await consumer.seek(alone[-1])
        await publish(client, topic, 1)
        last = [await consumer.receive(10_000) for _ in range(1 + inclusive)]
        assert (last[0].message_id() == alone[-1]) is inclusive
        await consumer.seek(ids[3])
        for _ in range(4 + inclusive):
            await consumer.acknowledge(await consumer.receive(10_000))
        await consumer.close()
        again = await client.subscribe(topic, "s")  # nothing that was left out is in the backlog
        with pytest.raises(aio.ClientTimeoutError):
            await again.receive(300)

    run(broker.url, body)


def test_refused_messages_come_again(broker: LiveBroker) -> None:
    """With a count (rules 6.2.1, 6.2.2), alone where messages are shared."""

    async def body(client: aio.Client) -> None:
        consumer = await client.subscribe(
            "nack", "s", aio.ConsumerType.Shared, initial_position=EARLIEST, negative_ack_redelivery_delay_ms=100
        )
        await publish(client, "nack", 3)
        found = [await consumer.receive(10_000) for _ in range(3)]
        await consumer.negative_acknowledge(found[1])
        again = await consumer.receive(10_000)
        assert (again.data(), again.redelivery_count()) == (b"1", 1)
        await consumer.redeliver_unacknowledged_messages()
        assert sorted(await numbers(consumer, 3)) == [0, 1, 2]

    run(broker.url, body)


def test_access_modes(broker: LiveBroker) -> None:
    """A second exclusive producer is refused, one that waits is let in (rules 3.2.2, 3.2.4)."""

    async def body(client: aio.Client) -> None:
        mode = aio.ProducerAccessMode
        first = await client.create_producer("access", access_mode=mode.Exclusive)
        with pytest.raises(aio.RefusedError, match="ProducerFenced"):
            await client.create_producer("access", access_mode=mode.Exclusive)
        waiting = asyncio.create_task(client.create_producer("access", access_mode=mode.WaitForExclusive))
        await first.send(b"1")
        assert not waiting.done()
        await first.close()
        second = await waiting
        await second.send(b"2")
        with pytest.raises(aio.AlreadyClosedError):
            await first.send(b"3")

    run(broker.url, body)


def test_transactions(broker: LiveBroker) -> None:
    """Messages and acknowledgements count together or not at all (rules 9.9, 9.12)."""

    async def body(client: aio.Client) -> None:
        source = await client.subscribe("txn-in", "s", initial_position=EARLIEST)
        target = await client.subscribe("txn-out", "s", initial_position=EARLIEST)
        await publish(client, "txn-in", 2)
        producer = await client.create_producer("txn-out")
        message = await source.receive(10_000)
        with pytest.raises(KeyError):
            async with await client.new_transaction(10) as txn:
                await producer.send(b"100", txn=txn)
                await source.acknowledge(message, txn=txn)
                raise KeyError
        async with await client.new_transaction(10) as txn:
            sent = [producer.send(b"%d" % number, txn=txn) for number in (7, 8)]
            await asyncio.gather(*sent)
            await source.acknowledge(message, txn=txn)
            with pytest.raises(aio.ClientTimeoutError):
                await target.receive(100)
        assert await numbers(target, 2) == [7, 8]
        await source.close()
        assert await numbers(await client.subscribe("txn-in", "s"), 1) == [1]

    run(broker.url, body)


def test_new_partitions_are_used(broker: LiveBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Producers and consumers notice them (rule 6.8.4)."""
    monkeypatch.setattr("magnetar.client.aio.client.GROWTH_PERIOD", 0.1)
    web = next(one.split("=")[1] for one in broker._command if one.startswith("webServicePort="))
    rest = Rest(f"http://127.0.0.1:{web}")
    path = "/admin/v2/persistent/public/default/growing/partitions"
    rest.ask("PUT", path, 1)

    async def body(client: aio.Client) -> None:
        consumer = await client.subscribe("growing", "s", initial_position=EARLIEST)
        producer = await client.create_producer("growing")
        assert (await producer.send(b"0")).partition() == 0
        await asyncio.to_thread(rest.ask, "POST", path, 3)
        partitions: set[int] = set()
        while partitions != {0, 1, 2}:
            partitions.add((await producer.send(b"1")).partition())
        seen: set[int] = set()
        while seen != {0, 1, 2}:
            message = await consumer.receive(10_000)
            seen.add(message.message_id().partition())
            await consumer.acknowledge(message)

    run(broker.url, body)


def test_what_is_closed_leaves_nothing(broker: LiveBroker) -> None:
    """Neither tasks nor handles, however often; nor does a call that is cancelled while it opens one."""

    async def body(client: aio.Client) -> None:
        await (await client.create_producer("leak")).close()
        tasks = len(asyncio.all_tasks())
        for number in range(30):
            producer = await client.create_producer("leak")
            await producer.send(b"x")
            consumer = await client.subscribe("leak", "s", initial_position=EARLIEST)
            reader = await client.create_reader("leak", aio.MessageId.earliest)
            for one in (producer, consumer, reader):
                await one.close()
            opening = asyncio.create_task(client.create_producer("leak", f"name-{number % 2}"))
            await asyncio.sleep(0.001 * (number % 5))
            opening.cancel()
            await asyncio.wait([opening])
            if not opening.cancelled():
                await opening.result().close()
        connections = [one.result() for one in client._connections.pool._opening.values()]

        def left() -> list[object]:
            handles = [*client._open._handles, *client._open._watchers]
            return [*handles, *(one for one in connections if one.producers or one.consumers)]

        # what was cancelled while the broker opened it is closed when the broker has answered
        deadline = asyncio.get_running_loop().time() + 60
        while (left() or len(asyncio.all_tasks()) > tasks) and asyncio.get_running_loop().time() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        assert left() == []
        assert len(asyncio.all_tasks()) <= tasks
        await (await client.create_producer("leak", "name-1")).close()

    run(broker.url, body)


def test_what_is_refused(broker: LiveBroker) -> None:
    """By name, before anything is opened; a full queue and a closed client say so (rule 6.1.7)."""

    async def body(client: aio.Client) -> None:
        with pytest.raises(aio.NotBuiltError, match="broker_consumer_stats_cache_time_ms=1000 is not built"):
            await client.subscribe("t", "s", broker_consumer_stats_cache_time_ms=1_000)
        with pytest.raises(TypeError, match="nonsense"):
            await client.create_producer("t", nonsense=1)
        producer = await client.create_producer("t", max_pending_messages=2)
        receipts = [producer.send_nowait(b"x") for _ in range(2)]
        with pytest.raises(aio.QueueFullError, match="2 messages"):
            receipts.append(producer.send_nowait(b"x"))
        await asyncio.gather(*receipts)
        await client.close()
        await client.close()
        with pytest.raises(aio.AlreadyClosedError):
            await client.create_producer("t")

    run(broker.url, body)
    with pytest.raises(aio.ConnectionLostError, match="is it running"):
        asyncio.run(_unreachable())


async def _unreachable() -> None:
    async with aio.Client(f"pulsar://127.0.0.1:{free_port()}", operation_timeout_seconds=0.3) as client:
        await client.create_producer("t")


def test_tls_and_tokens_that_expire(tmp_path: Path) -> None:
    """Credentials are shown again on the open connection (rule 12.6); who may not is told what would help."""
    with secured_broker(tmp_path) as secured, secured.rotating("app", 2.0) as token:
        login = aio.ClientLogin(token=f"file:{token}", trust=secured.authority.file)

        async def main() -> None:
            async with aio.Client(secured.url, login) as client:
                producer = await client.create_producer("t")
                consumer = await client.subscribe("t", "s", initial_position=EARLIEST)
                deadline = asyncio.get_running_loop().time() + 3.0
                count = 0
                while asyncio.get_running_loop().time() < deadline:
                    await producer.send(b"%d" % count)
                    assert await numbers(consumer, 1) == [count]
                    count += 1
                    await asyncio.sleep(0.1)
            async with aio.Client(secured.url, secured.login("stranger")) as client:
                with pytest.raises(aio.RefusedError, match="grant it with"):
                    await client.create_producer("t")

        asyncio.run(main())
