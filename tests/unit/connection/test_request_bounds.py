"""Requests with numbers, ids and versions at and beside what is allowed, and the one answer that each has."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from magnetar.config.settings import Settings
from magnetar.model.errors import ServerError
from magnetar.model.schemas import SchemaType
from magnetar.protocol import commands as c
from magnetar.protocol.codec import PARTS_MAX
from magnetar.testing.rawclient import RawClient, RawClientError, make_entry
from magnetar.testing.rawtransaction import RawTransaction
from tests.sim.world import T, World
from tests.support.conversations import connected, stats, talk

TRANSACTIONS = Settings(transactionCoordinatorEnabled=True)
CPP, JAVA = "Pulsar-CPP-v3.7.0", "Pulsar-Java-v4.0.8"
AVRO = c.Schema("s", b'{"type": "record", "name": "r", "fields": []}', SchemaType.AVRO)


async def is_closed(client: RawClient) -> bool:
    """Whether the broker has ended the connection."""
    try:
        await client.partitions(T)
    except ConnectionError:
        return True
    return client.lost.done()


@pytest.mark.parametrize(
    ("permits", "shown"), [(1, 1), ((1 << 31) - 1, (1 << 31) - 1), (0, None), (1 << 31, None), ((1 << 32) - 1, None)]
)
def test_permits_are_positive_numbers_of_32_bits(permits: int, shown: int | None) -> None:
    """Anything else ends the connection, but not for a consumer that is not there (rule 5.2.1)."""

    async def simulation(world: World) -> None:
        client = await connected()
        client.say(c.CommandFlow(99, permits))
        consumer = await client.subscribe(T, "s")
        consumer.flow(permits)
        assert await is_closed(client) == (shown is None)
        if shown is not None:
            (mine,) = (await stats(world))["subscriptions"]["s"]["consumers"]
            assert mine["availablePermits"] == shown

    talk(simulation)


def test_permits_that_add_up_to_more_than_32_bits_stay_at_the_most() -> None:
    async def simulation(world: World) -> None:
        client = await connected()
        consumer = await client.subscribe(T, "s")
        for permits in ((1 << 31) - 2, 1, 1, (1 << 31) - 1):
            consumer.flow(permits)
        await client.partitions(T)
        (mine,) = (await stats(world))["subscriptions"]["s"]["consumers"]
        assert mine["availablePermits"] == (1 << 31) - 1

    talk(simulation)


@pytest.mark.parametrize("count", [250, 251, 3_000, PARTS_MAX, PARTS_MAX + 1])
def test_a_transaction_acknowledges_so_many_ids_at_once_and_not_one_more(count: int) -> None:
    """All of them or none, so it is not done in pieces (docs/decisions/018)."""

    async def simulation(world: World) -> None:
        client = await connected()
        producer = await client.producer(T)
        published = [await producer.publish(b"x") for _ in range(3)]
        consumer = await client.subscribe(T, "s", initial_position=c.InitialPosition.Earliest)
        txn = await RawTransaction.begin(client)
        # ids that do not exist are passed over, the last one does
        ids = [c.MessageIdData(1 << 40, n) for n in range(count - 1)] + [published[1]]
        client.say(c.CommandAck(consumer.consumer_id, c.AckType.Individual, tuple(ids), txn=txn.id, request_id=900))
        if count > PARTS_MAX:
            assert await is_closed(client)
            assert (await stats(world))["subscriptions"]["s"]["msgBacklog"] == 3
            return
        await client.hear(c.CommandAckResponse, where=lambda one: one.request_id == 900 and one.error is None)
        await txn.commit()
        assert (await stats(world))["subscriptions"]["s"]["msgBacklog"] == 2
        assert not client.heard(c.CommandAckResponse)

    talk(simulation, TRANSACTIONS)


@pytest.mark.parametrize("version", [CPP, JAVA])
@pytest.mark.parametrize("what", ["a wrong checksum", "an id of its own", "a transaction", "an id in a transaction"])
def test_a_message_that_is_refused_for_good_is_refused_as_its_client_understands(what: str, version: str) -> None:
    """The C++ client gives up a message for one code alone (docs/decisions/019)."""

    async def simulation(world: World) -> None:
        client = await connected(version=version)
        producer = await client.producer(T)
        entry = make_entry(b"x" * 10, producer=producer.name, sequence_id=5)
        given: dict[str, Any] = {"txn": None, "message_id": None}
        code = ServerError.NotAllowedError
        if what == "a wrong checksum":
            entry, code = entry[:-1] + b"y", ServerError.ChecksumError
            text = "Checksum failed on the broker"
        elif what in ("an id of its own", "an id in a transaction"):
            if what == "an id in a transaction":
                given["txn"] = (await RawTransaction.begin(client)).id
            given["message_id"], text = c.MessageIdData(1, 1), "Only shadow topic supports sending messages with"
        else:
            given["txn"], text = c.TxnId(0, 7), "Transaction (0,7) is not open"
        client.say(
            c.CommandSend(producer.producer_id, 5, 1, None, False, given["txn"], False, given["message_id"], entry)
        )
        with pytest.raises(RawClientError) as refused:
            await producer.receipt(5)
        if version == CPP and code is not ServerError.ChecksumError:
            text, code = f"{code.name}: {text}", ServerError.ChecksumError
        assert refused.value.code is code
        assert refused.value.message.startswith(text)
        assert (await producer.publish(b"the next")).entry == 0, "and nothing of it is stored"

    talk(simulation, TRANSACTIONS)


@pytest.mark.parametrize("settings", [Settings(), TRANSACTIONS])
def test_why_a_message_of_a_transaction_is_refused(settings: Settings) -> None:
    async def simulation(world: World) -> None:
        client = await connected()
        for topic, text in (
            ("non-persistent://public/default/n", "takes no part in transactions: only persistent topics do"),
            (T, "is not open" if settings is TRANSACTIONS else "Transaction buffer disable!"),
        ):
            producer = await client.producer(topic)
            with pytest.raises(RawClientError, match=text) as refused:
                await producer.receipt(producer.send(b"x", txn=c.TxnId(0, 7)))
            assert refused.value.code is ServerError.NotAllowedError

    talk(simulation, settings)


@pytest.mark.parametrize(
    ("version", "code", "text"),
    [
        (b"", ServerError.IncompatibleSchema, "Empty schema version"),
        (bytes(7), ServerError.IncompatibleSchema, "a schema version has 8 bytes, 7 were sent"),
        (bytes(9), ServerError.IncompatibleSchema, "a schema version has 8 bytes, 9 were sent"),
        (bytes(8), None, ""),
        (None, None, ""),
        ((1).to_bytes(8, "big"), ServerError.TopicNotFound, "Topic not found or no-schema"),
        (b"\xff" * 8, ServerError.TopicNotFound, "Topic not found or no-schema"),
    ],
)
def test_a_schema_is_asked_for_by_a_version_of_eight_bytes(
    version: bytes | None, code: ServerError | None, text: str
) -> None:
    """Or without one, for the latest (rule 10.9)."""

    async def simulation(world: World) -> None:
        client = await connected()
        await client.producer(T, schema=AVRO)
        answer = await client.request(c.CommandGetSchema(client.new_id(), T, version), c.CommandGetSchemaResponse)
        assert answer.error is code
        if code is None:
            assert answer.schema is not None
            assert (answer.schema.schema_data, answer.schema_version) == (AVRO.schema_data, bytes(8))
        else:
            assert text in (answer.message or "")

    talk(simulation)


def test_ends_of_parts_of_a_transaction_are_for_those_that_are_not_open_here() -> None:
    """One that is open ends as a whole (rule 9.15)."""

    async def simulation(world: World) -> None:
        client = await connected()
        txn = (await RawTransaction.begin(client)).id
        for named, open_here in ((txn, True), (c.TxnId(0, 99), False)):
            for command, response in (
                (
                    c.CommandEndTxnOnPartition(client.new_id(), named, T, c.TxnAction.COMMIT),
                    c.CommandEndTxnOnPartitionResponse,
                ),
                (
                    c.CommandEndTxnOnSubscription(
                        client.new_id(), named, c.TxnSubscription(T, "s"), c.TxnAction.COMMIT
                    ),
                    c.CommandEndTxnOnSubscriptionResponse,
                ),
            ):
                answer: Any = await client.request(command, response)
                assert answer.txn == named
                assert answer.error is (ServerError.NotAllowedError if open_here else None)
                assert ("send END_TXN" in (answer.message or "")) == open_here

    talk(simulation, TRANSACTIONS)


def test_a_transaction_of_a_coordinator_that_is_not_here_is_refused_with_its_number() -> None:
    async def simulation(world: World) -> None:
        client = await connected()
        command = c.CommandNewTxn(client.new_id(), 60_000, 3)
        answer = await client.request(command, c.CommandNewTxnResponse)
        assert (answer.error, answer.txn) == (ServerError.TransactionCoordinatorNotFound, c.TxnId(3, 0))
        assert "id 3 not found" in (answer.message or "")

    talk(simulation, TRANSACTIONS)


@pytest.mark.parametrize("more", [0, 1])
def test_above_its_limit_the_coordinator_gives_no_answer(more: int) -> None:
    """So the client gives up and asks again later (rule 9.4)."""

    async def simulation(world: World) -> None:
        client = await connected()
        opened = [await RawTransaction.begin(client) for _ in range(2)]
        if more:
            client.say(c.CommandNewTxn(900, 60_000))
            await asyncio.sleep(5)
            assert not client.heard(c.CommandNewTxnResponse)
        await opened[0].abort()
        await RawTransaction.begin(client)

    talk(simulation, Settings(transactionCoordinatorEnabled=True, maxActiveTransactionsPerCoordinator=2))
