"""What an ACK with a transaction reserves and its commit acknowledges, whatever one command names (rule 9.12)."""

from __future__ import annotations

import asyncio

import pytest

from magnetar.config.settings import Settings
from magnetar.model.errors import ServerError
from magnetar.protocol import commands as c
from magnetar.protocol.entries import EntryMetadata, SingleMessageMetadata, build_entry, join_batch
from magnetar.testing.rawclient import RawClient, RawClientError, RawConsumer
from magnetar.testing.rawtransaction import RawTransaction
from tests.sim.world import T, World
from tests.support.conversations import connected, stats, talk

SETTINGS = Settings(
    transactionCoordinatorEnabled=True, acknowledgmentAtBatchIndexLevelEnabled=True,
    activeConsumerFailoverDelayTimeMillis=0,
)  # fmt: skip
ENTRIES, SIZE = 4, 4
BATCH = build_entry(
    EntryMetadata("p", 0, 1, num_messages_in_batch=SIZE), join_batch([(SingleMessageMetadata(), b"m")] * SIZE)
)
NOWHERE = c.MessageIdData(99, 99)
Named = tuple[int | None, int]
"""An entry (None: one that does not exist) and which of its messages stay, as bits; 0: the whole entry is named."""
EVERYTHING: dict[int, tuple[int, ...]] = dict.fromkeys(range(ENTRIES), ())


async def published(client: RawClient) -> list[c.MessageIdData]:
    producer = await client.producer(T)
    ids: list[c.MessageIdData] = []
    for number in range(ENTRIES):
        receipt = await producer.receipt(producer.send(b"", entry=BATCH, count=SIZE, sequence_id=number))
        assert receipt.message_id is not None
        ids.append(receipt.message_id)
    return ids


async def reading(client: RawClient, sub_type: c.SubType) -> RawConsumer:
    consumer = await client.subscribe(T, "s", sub_type, initial_position=c.InitialPosition.Earliest)
    consumer.flow(1000)
    return consumer


def named(ids: list[c.MessageIdData], what: Named) -> c.MessageIdData:
    entry, left = what
    one = NOWHERE if entry is None else ids[entry]
    return one._replace(ack_set=(left,), batch_size=SIZE) if left else one


async def left_after(client: RawClient, consumer: RawConsumer, sub_type: c.SubType) -> dict[int, tuple[int, ...]]:
    """What the next consumer gets: entries, and which of their messages."""
    await client.request(c.CommandCloseConsumer(consumer.consumer_id, client.new_id()), c.CommandSuccess)
    again = await reading(client, sub_type)
    await asyncio.sleep(1)  # of the simulation: also what is read from the disk has come
    got = [message for message in client.heard(c.CommandMessage) if message.consumer_id == again.consumer_id]
    return {message.message_id.entry: message.ack_set for message in got}


@pytest.mark.parametrize("sub_type", [c.SubType.Exclusive, c.SubType.Shared])
@pytest.mark.parametrize(
    ("acked", "left"),
    [
        ([(0, 0), (2, 0)], {1: (), 3: ()}),
        ([(0, 0b1100), (0, 0b0111)], {0: (0b0100,), 1: (), 2: (), 3: ()}),
        ([(0, 0b1100), (0, 0b0011)], {1: (), 2: (), 3: ()}),
        ([(1, 0b1100), (1, 0)], {0: (), 2: (), 3: ()}),
        ([(1, 0), (1, 0b1100), (3, 0b1000)], {0: (), 2: (), 3: (0b1000,)}),
        ([(2, 0), (2, 0)], {0: (), 1: (), 3: ()}),
        ([(None, 0), (2, 0)], {0: (), 1: (), 3: ()}),
        ([(None, 0b0001), (2, 0), (None, 0)], {0: (), 1: (), 3: ()}),
        ([(None, 0)], EVERYTHING),
        ([], EVERYTHING),
    ],
)
def test_messages_one_by_one(sub_type: c.SubType, acked: list[Named], left: dict[int, tuple[int, ...]]) -> None:
    """Parts of a batch add up, a whole entry includes its parts, and what does not exist is passed over."""

    async def simulation(world: World) -> None:
        client = await connected()
        ids = await published(client)
        consumer = await reading(client, sub_type)
        for _ in range(ENTRIES):
            await consumer.receive()
        txn = await RawTransaction.begin(client)
        await txn.ack(consumer, *[named(ids, what) for what in acked])
        assert (await stats(world))["subscriptions"]["s"]["msgBacklog"] == ENTRIES, "only a commit acknowledges"
        await txn.commit()
        assert await left_after(client, consumer, sub_type) == left

    talk(simulation, SETTINGS)


@pytest.mark.parametrize("sub_type", [c.SubType.Exclusive, c.SubType.Failover, c.SubType.Shared, c.SubType.Key_Shared])
@pytest.mark.parametrize(
    ("acked", "left"),
    [
        ([(0, 0)], {1: (), 2: (), 3: ()}),
        ([(1, 0b1100)], {1: (0b1100,), 2: (), 3: ()}),
        ([(3, 0)], {}),
        ([(None, 0)], EVERYTHING),
        ([(0, 0), (1, 0)], EVERYTHING),
        ([], EVERYTHING),
    ],
)
def test_everything_up_to_a_message(sub_type: c.SubType, acked: list[Named], left: dict[int, tuple[int, ...]]) -> None:
    """Only one message can be meant, and only where there is an order; everything else is answered and means nothing
    (rules 5.5.6, 5.7.4, 5.7.13)."""
    in_order = sub_type in (c.SubType.Exclusive, c.SubType.Failover)

    async def simulation(world: World) -> None:
        client = await connected()
        ids = await published(client)
        consumer = await reading(client, sub_type)
        for _ in range(ENTRIES):
            await consumer.receive()
        txn = await RawTransaction.begin(client)
        await txn.ack(consumer, *[named(ids, what) for what in acked], cumulative=True)
        assert not client.heard(c.CommandAckResponse), "one answer"
        await txn.commit()
        assert await left_after(client, consumer, sub_type) == (left if in_order else EVERYTHING)

    talk(simulation, SETTINGS)


@pytest.mark.parametrize("how", ["whole", "part", "whole after its part"])
def test_what_another_transaction_has_reserved_is_refused_and_nothing_else_of_that_command_is_reserved(
    how: str,
) -> None:
    """The refused command leaves no trace: the transaction commits, and what it alone named comes again."""

    async def simulation(world: World) -> None:
        client = await connected()
        ids = await published(client)
        consumer = await reading(client, c.SubType.Shared)
        for _ in range(ENTRIES):
            await consumer.receive()
        first, second = [await RawTransaction.begin(client) for _ in range(2)]
        await first.ack(consumer, named(ids, (1, 0 if how == "whole" else 0b1100)))
        with pytest.raises(RawClientError) as refused:
            await second.ack(consumer, ids[0], named(ids, (1, 0b0110 if how == "part" else 0)))
        assert refused.value.code is ServerError.TransactionConflict
        assert "0:1" in refused.value.message or f"{ids[1].ledger}:1" in refused.value.message
        assert not client.lost.done(), "a refusal of one client's is no reason to close"
        await second.commit()
        await first.commit()
        left = {0: (), 1: (0b1100,), 2: (), 3: ()}
        if how == "whole":
            del left[1]
        assert await left_after(client, consumer, c.SubType.Shared) == left

    talk(simulation, SETTINGS)


@pytest.mark.parametrize("cumulative", [False, True])
@pytest.mark.parametrize(
    ("txn", "code"),
    [
        (c.TxnId(1, 0), ServerError.TransactionCoordinatorNotFound),
        (c.TxnId(0, 99), ServerError.TransactionNotFound),
    ],
)
def test_a_transaction_that_is_not_open_reserves_nothing(cumulative: bool, txn: c.TxnId, code: ServerError) -> None:
    """One of another coordinator, and one that never was (rules 9.6, 9.12)."""

    async def simulation(world: World) -> None:
        client = await connected()
        ids = await published(client)
        consumer = await reading(client, c.SubType.Exclusive)
        with pytest.raises(RawClientError) as refused:
            await consumer.ack(ids[1], cumulative=cumulative, txn=txn)
        assert refused.value.code is code
        assert await left_after(client, consumer, c.SubType.Exclusive) == EVERYTHING

    talk(simulation, SETTINGS)


@pytest.mark.parametrize("cumulative", [False, True])
def test_more_messages_than_can_be_believed_are_refused(cumulative: bool) -> None:
    """Of an entry that is not in memory the broker knows no size; who asks got it from an earlier one."""

    async def simulation(world: World) -> None:
        ids = await published(await connected())
        await world.restart()
        client = await connected()
        consumer = await client.subscribe(T, "s", initial_position=c.InitialPosition.Earliest)
        txn = await RawTransaction.begin(client)
        with pytest.raises(RawClientError, match="receive it again") as refused:
            await txn.ack(consumer, ids[1]._replace(ack_set=(1,) * 4000, batch_size=256_000), cumulative=cumulative)
        assert refused.value.code is ServerError.NotAllowedError
        await txn.commit()
        assert await left_after(client, consumer, c.SubType.Exclusive) == EVERYTHING

    talk(simulation, SETTINGS)


def test_no_answer_is_sent_to_who_asked_for_none() -> None:
    """Neither to what is reserved nor to what is refused (rule 1.3.5)."""

    async def simulation(world: World) -> None:
        client = await connected()
        ids = await published(client)
        consumer = await reading(client, c.SubType.Shared)
        txn = await RawTransaction.begin(client)
        for one in (ids[0], ids[0], NOWHERE):
            client.say(c.CommandAck(consumer.consumer_id, c.AckType.Individual, (one,), txn=txn.id))
        client.say(c.CommandAck(consumer.consumer_id, c.AckType.Cumulative, (ids[3],), txn=txn.id))
        await txn.commit()
        assert not client.heard(c.CommandAckResponse) and not client.heard(c.CommandError)
        assert await left_after(client, consumer, c.SubType.Shared) == {1: (), 2: (), 3: ()}

    talk(simulation, SETTINGS)
