"""Transactions as a client sees them (rules of group 9)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest

from magnetar.broker.topic.subscription.explanation import explain
from magnetar.model.errors import ServerError
from magnetar.protocol import commands as c
from magnetar.protocol.entries import EntryMetadata, SingleMessageMetadata, build_entry, join_batch
from magnetar.testing.rawclient import RawClient, RawClientError, RawConsumer, RawProducer, payload_of
from magnetar.testing.rawtransaction import RawTransaction
from tests.wire.bench import Wires, on_broker

T, U = "persistent://public/default/t", "persistent://public/default/u"
ASSIGN = "persistent://pulsar/system/transaction_coordinator_assign"
EARLIEST = c.InitialPosition.Earliest
Test = Callable[[Wires], Awaitable[None]]


def with_transactions(test: Test, **settings: object) -> None:
    on_broker(test, transactionCoordinatorEnabled=True, **settings)


async def settled() -> None:
    """Waits until all that was under way has arrived."""
    await asyncio.sleep(1.0)


async def texts(client: RawClient) -> list[str]:
    """Payloads that arrived since the last call."""
    await settled()
    got = []
    for message in client.heard(c.CommandMessage):
        await client.hear(c.CommandMessage)
        got.append(payload_of(message.entry).decode())
    return got


async def stage(
    wires: Wires, sub_type: c.SubType = c.SubType.Shared, count: int = 0
) -> tuple[RawClient, RawProducer, RawConsumer]:
    """A producer and a consumer of one topic, on which so many messages were delivered."""
    client = await wires.open()
    producer = await client.producer(T)
    consumer = await client.subscribe(T, "s", sub_type, initial_position=EARLIEST)
    consumer.flow(1000)
    for number in range(count):
        await producer.publish(str(number).encode())
    return client, producer, consumer


async def received(client: RawClient, count: int) -> list[c.MessageIdData]:
    return [(await client.hear(c.CommandMessage)).message_id for _ in range(count)]


def backlog(wires: Wires, topic: str = T) -> int:
    return wires.world.backlog(topic, "s")


def test_discovery() -> None:
    """There is one coordinator, whose transactions are numbered from 0 (rules 9.2 and 9.3)."""

    async def test(wires: Wires) -> None:
        client = await wires.open()
        assert (await client.partitions(ASSIGN)).partitions == 1
        assert (await client.lookup(f"{ASSIGN}-partition-0")).error is None
        connected = await client.request(
            c.CommandTcClientConnectRequest(client.new_id(), 0), c.CommandTcClientConnectResponse
        )
        assert connected.error is None
        other = await client.request(
            c.CommandTcClientConnectRequest(client.new_id(), 5), c.CommandTcClientConnectResponse
        )
        assert other.error is not None
        assert [(await RawTransaction.begin(client)).id for _ in range(2)] == [(0, 0), (0, 1)]
        with pytest.raises(RawClientError, match="Transaction coordinator with id 5 not found!"):
            await RawTransaction.begin(client, tc_id=5)

    with_transactions(test)


def test_produced_messages_are_seen_after_commit_only() -> None:
    """Messages of a transaction are seen after its commit; plain messages after them wait, those before do not (rules
    9.9 and 9.10)."""

    async def test(wires: Wires) -> None:
        client, producer, consumer = await stage(wires)
        txn, other = await RawTransaction.begin(client), await RawTransaction.begin(client)
        first = await producer.publish(b"before")
        await txn.add_partitions(T)
        await txn.publish(producer, b"x0")
        await producer.publish(b"later")
        await other.publish(producer, b"y0")
        await txn.publish(producer, b"x1")
        assert await texts(client) == ["before"]
        assert (await consumer.last_message_id()).last_message_id[:2] == first[:2]
        assert backlog(wires) == 5
        explained = explain(wires.world.machine.broker.service.topics[T].subscriptions["s"])
        assert any("transaction (0,0) is open and began there" in finding.text for finding in explained)
        await other.commit()
        assert await texts(client) == []
        await txn.commit()
        assert await texts(client) == ["x0", "later", "y0", "x1"]
        last = (await consumer.last_message_id()).last_message_id
        assert (last.ledger, last.entry) == (first.ledger, first.entry + 4)
        # two markers after them took entry ids and were acknowledged by the broker
        after = await producer.publish(b"after")
        assert after.entry == first.entry + 7
        assert backlog(wires) == 6

    with_transactions(test)


@pytest.mark.parametrize("timed_out", [False, True])
def test_aborted_messages_are_never_seen(timed_out: bool) -> None:
    """Aborted messages are never delivered nor named as the last message; a time-out is an abort (rules 9.8 and
    9.10)."""

    async def test(wires: Wires) -> None:
        client, producer, consumer = await stage(wires)
        txn = await RawTransaction.begin(client, 2000)
        asked = wires.now
        await txn.publish(producer, b"x0")
        seen = await producer.publish(b"plain")
        await txn.publish(producer, b"x1")
        if timed_out:
            await client.hear(c.CommandMessage)
            assert 1.9 < wires.now - asked < 2.1
        else:
            await txn.abort()
            assert await texts(client) == ["plain"]
        assert await texts(client) == []
        assert (await consumer.last_message_id()).last_message_id[:2] == seen[:2]
        assert backlog(wires) == 1
        for end in (txn.commit, txn.abort):
            with pytest.raises(RawClientError, match=r"TransactionNotFound: .*txdID `\(0,0\)`not found "):
                await end()

    with_transactions(test)


def test_acknowledgements_wait_for_the_end() -> None:
    """Acknowledgements of a transaction reserve messages: they are gone on commit and come again at once on abort (rule
    9.12)."""

    async def test(wires: Wires) -> None:
        client, _, consumer = await stage(wires, count=4)
        ids = await received(client, 4)
        txn, other = await RawTransaction.begin(client), await RawTransaction.begin(client)
        await txn.add_subscription(T, "s")
        await txn.ack(consumer, ids[0], ids[1])
        assert backlog(wires) == 4
        for one in (txn, other):
            with pytest.raises(
                RawClientError, match=r"TransactionConflict: .*\(ackSet is null\) in pending ack status\."
            ):
                await one.ack(consumer, ids[2], ids[1])
        await other.ack(consumer, ids[2])
        consumer.redeliver()
        assert await texts(client) == ["3"]
        await other.abort()
        again = await client.hear(c.CommandMessage)
        assert (payload_of(again.entry), again.redelivery_count) == (b"2", 1), "an abort counts as a redelivery"
        assert backlog(wires) == 4
        await txn.commit()
        assert backlog(wires) == 2
        third = await RawTransaction.begin(client)
        with pytest.raises(RawClientError, match=r"TransactionConflict: .* already acked before\."):
            await third.ack(consumer, ids[0])

    with_transactions(test)


def test_a_plain_acknowledgement_wins() -> None:
    async def test(wires: Wires) -> None:
        client, _, consumer = await stage(wires, count=2)
        ids = await received(client, 2)
        txn = await RawTransaction.begin(client)
        await txn.ack(consumer, *ids)
        await consumer.ack(ids[0])
        assert backlog(wires) == 1
        await txn.abort()
        assert await texts(client) == ["1"]

    with_transactions(test)


def test_transactions_acknowledge_parts_of_a_batch() -> None:
    """Two transactions may hold different messages of one batch (rules 5.7.9, 9.12 and 9.14)."""

    async def test(wires: Wires) -> None:
        client, producer, consumer = await stage(wires)
        metadata = EntryMetadata("p", 0, 1, num_messages_in_batch=4)
        entry = build_entry(
            metadata, join_batch([(SingleMessageMetadata(), b"a"), (SingleMessageMetadata(), b"b")] * 2)
        )
        producer.send(b"", entry=entry, count=4)
        (batch,) = await received(client, 1)
        txn, other = await RawTransaction.begin(client), await RawTransaction.begin(client)
        await txn.ack(consumer, batch._replace(ack_set=(0b1110,), batch_size=4))
        with pytest.raises(RawClientError, match=r"batch message:.* \(ackSet with long\[\] size of 1\) in pending"):
            await other.ack(consumer, batch._replace(ack_set=(0b1100,), batch_size=4))
        await other.ack(consumer, batch._replace(ack_set=(0b1101,), batch_size=4))
        consumer.redeliver()
        assert (await client.hear(c.CommandMessage)).ack_set == (0b1100,)
        await other.abort()
        assert (await client.hear(c.CommandMessage)).ack_set == (0b1110,)
        await txn.commit()
        consumer.redeliver()
        assert (await client.hear(c.CommandMessage)).ack_set == (0b1110,)
        last = await RawTransaction.begin(client)
        await last.ack(consumer, batch)
        consumer.redeliver()
        await settled()
        assert not client.heard(c.CommandMessage)
        await last.commit()
        assert backlog(wires) == 0

    with_transactions(test, acknowledgmentAtBatchIndexLevelEnabled=True)


def test_cumulative_acknowledgements() -> None:
    """Cumulative acknowledgements go forward only, one transaction at a time, and do not stop redelivery (rule
    9.12)."""

    async def test(wires: Wires) -> None:
        client, _, consumer = await stage(wires, c.SubType.Exclusive, count=4)
        ids = await received(client, 4)
        txn, other = await RawTransaction.begin(client), await RawTransaction.begin(client)
        await txn.ack(consumer, ids[1], cumulative=True)
        refused = "TransactionConflict: .* within range of current currentPosition"
        for one, upto in ((txn, 1), (txn, 0), (other, 3)):
            with pytest.raises(RawClientError, match=refused):
                await one.ack(consumer, ids[upto], cumulative=True)
        await other.ack(consumer, ids[0])
        await txn.ack(consumer, ids[2], cumulative=True)
        consumer.redeliver()
        assert await texts(client) == ["1", "2", "3"]
        await txn.commit()
        assert backlog(wires) == 1
        await other.abort()
        assert await texts(client) == ["3"]
        third = await RawTransaction.begin(client)
        with pytest.raises(RawClientError, match="within range of cursor's markDeletePosition"):
            await third.ack(consumer, ids[2], cumulative=True)

    with_transactions(test)


@pytest.mark.parametrize("commit", [True, False])
def test_both_halves_end_together_on_all_topics_and_through_an_unload(commit: bool) -> None:
    async def test(wires: Wires) -> None:
        client, producer, consumer = await stage(wires, count=3)
        there = await client.producer(U)
        ids = await received(client, 3)
        txn = await RawTransaction.begin(client)
        await txn.publish(producer, b"t")
        await txn.publish(there, b"u")
        await txn.ack(consumer, ids[0], ids[2])
        await client.close()
        service = wires.world.machine.broker.service
        for loaded in list(service.topics.values()):
            service.unload(loaded.name)
        client = await wires.open()
        for topic in (T, U):
            (await client.subscribe(topic, "s", c.SubType.Shared, initial_position=EARLIEST)).flow(1000)
        assert await texts(client) == ["1"]
        txn.client = client
        await (txn.commit() if commit else txn.abort())
        assert sorted(await texts(client)) == (["t", "u"] if commit else ["0", "2"])
        assert backlog(wires) == (2 if commit else 3)

    with_transactions(test)


def test_what_is_not_open_is_refused() -> None:
    """A transaction that is not open is refused, or it would block its topic or reserve entries for ever (decision
    007)."""

    async def test(wires: Wires) -> None:
        client, producer, consumer = await stage(wires, count=1)
        ids = await received(client, 1)
        txn = await RawTransaction.begin(client)
        await txn.commit()
        for gone in (txn, RawTransaction(client, c.TxnId(0, 99)), RawTransaction(client, c.TxnId(7, 0))):
            with pytest.raises(RawClientError, match=r"NotAllowedError: Transaction .* is not open"):
                await gone.publish(producer, b"x")
            with pytest.raises(RawClientError, match=r"TransactionNotFound|TransactionCoordinatorNotFound"):
                await gone.ack(consumer, *ids)
            with pytest.raises(RawClientError, match=r"TransactionNotFound|TransactionCoordinatorNotFound"):
                await gone.add_partitions(T)
        assert (await producer.publish(b"plain")).entry == 1

    with_transactions(test)


def test_missing_participants_count_as_ended() -> None:
    """A topic or subscription that is missing counts as ended (rule 9.15)."""

    async def test(wires: Wires) -> None:
        client, _, consumer = await stage(wires, count=1)
        ids = await received(client, 1)
        txn = await RawTransaction.begin(client)
        await txn.add_partitions("persistent://no/such/topic", T)
        await txn.add_subscription(T, "missing")
        await txn.ack(consumer, *ids)
        await consumer.unsubscribe()
        await txn.commit()

    with_transactions(test)


def test_half_an_end_is_refused() -> None:
    """END_TXN_ON_… of another broker's coordinator has nothing to end here and may not end ours (decision 007)."""

    async def test(wires: Wires) -> None:
        client = await wires.open()
        txn = await RawTransaction.begin(client)
        await txn.add_partitions(T)
        half = c.CommandEndTxnOnPartition(client.new_id(), txn.id, T, c.TxnAction.COMMIT)
        answer = await client.request(half, c.CommandEndTxnOnPartitionResponse)
        assert answer.error is ServerError.NotAllowedError
        name = c.TxnSubscription(T, "s")
        other = c.CommandEndTxnOnSubscription(client.new_id(), txn.id, name, c.TxnAction.ABORT)
        assert (await client.request(other, c.CommandEndTxnOnSubscriptionResponse)).error is ServerError.NotAllowedError
        await txn.commit()
        over = c.CommandEndTxnOnPartition(client.new_id(), txn.id, T, c.TxnAction.COMMIT)
        assert (await client.request(over, c.CommandEndTxnOnPartitionResponse)).error is None

    with_transactions(test)


def test_above_the_limit_of_transactions_there_is_no_answer() -> None:
    """Above the limit of open transactions NEW_TXN is not answered (rule 9.4)."""

    async def test(wires: Wires) -> None:
        client = await wires.open()
        client.patience_s = 5.0
        txn = await RawTransaction.begin(client)
        with pytest.raises(TimeoutError):
            await RawTransaction.begin(client)
        await txn.abort()
        await RawTransaction.begin(client)

    with_transactions(test, maxActiveTransactionsPerCoordinator=1)


def test_without_transactions() -> None:
    """A broker without transactions refuses their commands (rules 9.1 and 9.13)."""

    async def test(wires: Wires) -> None:
        client, producer, consumer = await stage(wires, count=1)
        ids = await received(client, 1)
        with pytest.raises(RawClientError, match=r"NotAllowedError: Transactions are not enabled\."):
            await RawTransaction.begin(client)
        with pytest.raises(RawClientError, match=r"NotAllowedError: Transaction buffer disable!"):
            await RawTransaction(client, c.TxnId(0, 0)).publish(producer, b"x")
        with pytest.raises(RawClientError, match=r"NotAllowedError: .*Server don't support transaction ack!"):
            await RawTransaction(client, c.TxnId(0, 0)).ack(consumer, *ids)

    on_broker(test)


def test_the_log_counts_transactions_that_time_out(caplog: pytest.LogCaptureFixture) -> None:
    """However many transactions time out and however they are spread, one line is logged at once and one a minute."""
    caplog.set_level(logging.INFO, "magnetar.broker.transaction_coordinator")

    async def test(wires: Wires) -> None:
        client = await wires.open()
        for number in range(300):
            await RawTransaction.begin(client, 10 + 100 * number)
        await asyncio.sleep(200)
        assert not wires.world.machine.broker.service.coordinator.open

    with_transactions(test)
    lines = [record.getMessage() for record in caplog.records if "aborted" in record.getMessage()]
    assert 1 <= len(lines) <= 4, lines
    assert sum(int(line.split()[0]) for line in lines) == 300
