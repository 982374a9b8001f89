"""ACK is answered once if it has a request id, and not at all if it has none (rule 1.3.5)."""

from __future__ import annotations

import pytest

from magnetar.config.settings import Settings
from magnetar.model.errors import ServerError
from magnetar.protocol import commands as c
from magnetar.testing.rawclient import RawClientError
from tests.sim.world import T, World
from tests.support.conversations import connected, talk

UNKNOWN = c.TxnId(0, 77)
NOWHERE = c.MessageIdData(99, 99)


@pytest.mark.parametrize("transaction", ["none", "open", "not open", "where there are none"])
@pytest.mark.parametrize("kind", c.AckType)
@pytest.mark.parametrize("named", ["the last", "all", "part of the last", "nothing", "what does not exist"])
def test_an_ack_has_one_answer_if_it_asks_for_one(named: str, kind: c.AckType, transaction: str) -> None:
    """Also one that names nothing and one that is refused."""

    async def simulation(world: World) -> None:
        client = await connected()
        producer = await client.producer(T)
        silent, asking = [await client.subscribe(T, subscription) for subscription in ("silent", "asking")]
        for consumer in (silent, asking):
            consumer.flow(2)
        first, last = [await producer.publish(payload) for payload in (b"1", b"2")]
        for consumer in (silent, asking):
            assert [(await consumer.receive()).message_id for _ in range(2)] == [first, last]
        ids = {
            "the last": (last,),
            "all": (first, last),
            "part of the last": (last._replace(ack_set=(1,), batch_size=2),),
            "nothing": (),
            "what does not exist": (NOWHERE,),
        }[named]
        txn = None if transaction == "none" else UNKNOWN
        if transaction == "open":
            begun = await client.request(c.CommandNewTxn(client.new_id(), 60_000), c.CommandNewTxnResponse)
            txn = begun.txn
        asked = client.new_id()
        for consumer, request_id in ((silent, None), (asking, asked)):
            client.say(c.CommandAck(consumer.consumer_id, kind, ids, txn=txn, request_id=request_id))
        answer = await client.hear(c.CommandAckResponse)
        await producer.publish(b"3")  # durable, so whatever was to come of the acknowledgements is here
        assert answer.request_id == asked
        assert (answer.error is None) == (txn != UNKNOWN)
        assert not client.heard(c.CommandAckResponse)

    talk(simulation, Settings(transactionCoordinatorEnabled=transaction != "where there are none"))


def test_an_ack_in_a_transaction_is_refused_where_nothing_is_stored() -> None:
    """There is no backlog whose messages it could reserve (rule 9.12)."""

    async def simulation(world: World) -> None:
        client = await connected()
        consumer = await client.subscribe("non-persistent://public/default/n", "s")
        begun = await client.request(c.CommandNewTxn(client.new_id(), 60_000), c.CommandNewTxnResponse)
        with pytest.raises(RawClientError) as refused:
            await consumer.ack(NOWHERE, txn=begun.txn)
        assert refused.value.code is ServerError.NotAllowedError

    talk(simulation, Settings(transactionCoordinatorEnabled=True))


@pytest.mark.parametrize("txn", [None, UNKNOWN])
def test_an_ack_for_a_consumer_that_is_not_open_has_no_answer(txn: c.TxnId | None) -> None:
    """One that is still being opened is none, too."""

    async def simulation(world: World) -> None:
        client = await connected()
        acks = [c.CommandAck(1, c.AckType.Individual, (NOWHERE,), txn=txn, request_id=asked) for asked in (None, 901)]
        client.say(*acks, c.CommandSubscribe(T, "s", c.SubType.Exclusive, 1, 900), *acks)
        await client.hear(c.CommandSuccess)
        await client.producer(T)
        assert not client.heard(c.CommandAckResponse) and not client.heard(c.CommandError)

    talk(simulation, Settings(transactionCoordinatorEnabled=True))


@pytest.mark.parametrize("entry", [-1, -3])
@pytest.mark.parametrize("acked", [False, True])
def test_an_id_before_the_first_entry_of_a_ledger_acknowledges_nothing(acked: bool, entry: int) -> None:
    """Answers name such ids: where a ledger begins and nothing of it is acknowledged (rule 5.7.4)."""

    async def simulation(world: World) -> None:
        client = await connected()
        producer = await client.producer(T)
        consumer = await client.subscribe(T, "s", c.SubType.Shared)
        consumer.flow(10)
        for _ in range(3):
            await producer.publish(b"before")
        topic = world.machine.broker.service.topics[T]
        topic.log.open_ledger()
        last = await producer.publish(b"in the next ledger")
        if acked:
            await consumer.ack(last)
        consumer.ack_unconfirmed(last._replace(entry=entry))
        await producer.publish(b"")  # whatever was to come of the acknowledgement is here
        assert topic.subscriptions["s"].cursor.backlog() == 5 - acked

    talk(simulation)
