"""Deduplication, encryption and size of messages, as clients see them (rules 3.1.7, 3.3.7, 3.4)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from magnetar.model.names import NamespaceName, TopicName
from magnetar.protocol import commands as c
from magnetar.protocol.entries import EncryptionKey, EntryMetadata, build_entry
from magnetar.testing.rawclient import RawClient, RawClientError, RawProducer
from tests.support.at_once import at_once
from tests.wire.bench import Wires, on_broker

T = "persistent://public/default/t"
NAMESPACE = NamespaceName.parse("public/default")
NOWHERE = c.MessageIdData(-1, -1)


def stored(wires: Wires) -> int:
    return wires.world.machine.broker.service.topics[T].log.end


def policy(wires: Wires, name: str, value: Any) -> None:
    resources = wires.world.machine.broker.service.resources
    at_once(resources.topic_policies.update(TopicName.parse(T), name, value))


async def send(producer: RawProducer, sequence_id: int, *, highest: int | None = None) -> c.CommandSendReceipt:
    """Publishes one message; returns its receipt."""
    say(producer, sequence_id, build_entry(EntryMetadata(producer.name, sequence_id, 1), b"m"), highest)
    return await producer.receipt(sequence_id)


def say(producer: RawProducer, sequence_id: int, entry: bytes, highest: int | None, is_chunk: bool = False) -> None:
    producer.client.say(
        c.CommandSend(producer.producer_id, sequence_id, 1, highest, is_chunk, None, False, None, entry)
    )


def test_a_duplicate_has_a_receipt_and_is_not_stored() -> None:
    """A duplicate gets a receipt and is not stored; gaps are accepted (rules 3.4.3 and 3.4.5)."""

    async def test(wires: Wires) -> None:
        producer = await (await wires.open()).producer(T, "p")
        assert producer.opened.last_sequence_id == -1
        for sequence_id in (0, 1, 5):
            assert (await send(producer, sequence_id)).message_id != NOWHERE
        for sequence_id in (5, 0, 3):
            again = await send(producer, sequence_id)
            assert again.message_id is not None
            assert (again.message_id.ledger, again.message_id.entry) == (-1, -1)
        assert stored(wires) == 3
        other = await producer.client.producer(T, "q")
        assert (await send(other, 0)).message_id != NOWHERE
        assert stored(wires) == 4

    on_broker(test, brokerDeduplicationEnabled=True)


def test_the_last_sequence_id_outlives_closing_unloading_and_power_loss() -> None:
    """The last sequence id of a producer is durable (rules 3.1.5 and 3.4.9)."""

    async def test(wires: Wires) -> None:
        client = await wires.open()
        producer = await client.producer(T, "p")
        await send(producer, 7)
        await producer.close()
        producer = await client.producer(T, "p")
        assert producer.opened.last_sequence_id == 7
        wires.world.machine.broker.service.unload(TopicName.parse(T))
        producer = await client.producer(T, "p")
        assert producer.opened.last_sequence_id == 7
        wires.world.machine.power_off()
        await wires.world.machine.start()
        producer = await (await wires.open()).producer(T, "p")
        assert producer.opened.last_sequence_id == 7
        await send(producer, 7)
        assert stored(wires) == 1

    on_broker(test, brokerDeduplicationEnabled=True)


def test_a_duplicate_of_a_message_in_flight_is_refused() -> None:
    """A duplicate of a message in flight gets SEND_ERROR before the receipt of the original; everything stays open
    (rule 3.4.4)."""

    async def test(wires: Wires) -> None:
        client = await wires.open()
        producer = await client.producer(T, "p")
        await send(producer, 0)
        entry = build_entry(EntryMetadata("p", 1, 1), b"m")
        heard: list[Any] = []
        client.on_command = heard.append
        say(producer, 1, entry, None)
        say(producer, 1, entry, None)
        with pytest.raises(
            RawClientError, match=r"PersistenceError: \[.*/t\]\[p\]Cannot determine whether the message"
        ):
            await producer.receipt(1)
        await producer.receipt(1)
        assert [type(command) for command in heard] == [c.CommandSendError, c.CommandSendReceipt]
        await send(producer, 1)
        assert stored(wires) == 2

    on_broker(test, brokerDeduplicationEnabled=True)


def test_the_receipt_of_a_duplicate_keeps_its_turn() -> None:
    async def test(wires: Wires) -> None:
        client = await wires.open()
        producer = await client.producer(T, "p")
        await send(producer, 5)
        heard: list[Any] = []
        client.on_command = heard.append
        sent = [6, 5, 4, 7, 8, 5, 9, 9, 4]
        for sequence_id in sent:
            say(producer, sequence_id, build_entry(EntryMetadata("p", sequence_id, 1), b"m"), None)
        await asyncio.sleep(1)
        answered = [(receipt.sequence_id, receipt.message_id.entry) for receipt in heard[1:]]
        assert isinstance(heard[0], c.CommandSendError)  # 3.4.4: at once
        assert answered == [(6, 1), (5, -1), (4, -1), (7, 2), (8, 3), (5, -1), (9, 4), (4, -1)]

    on_broker(test, brokerDeduplicationEnabled=True)


def test_batches() -> None:
    """A batch is judged by its first sequence id; one that is stored in part is refused instead of dropped (rules 3.4.2
    and 3.4.6)."""

    async def test(wires: Wires) -> None:
        producer = await (await wires.open()).producer(T, "p")
        await send(producer, 0, highest=4)
        for first, last in ((0, 4), (2, 3), (4, 4), (4, None)):
            receipt = await send(producer, first, highest=last)
            assert receipt.message_id is not None
            assert receipt.message_id.entry == -1
            assert receipt.highest_sequence_id == (last or 0)
        with pytest.raises(
            RawClientError, match=r"NotAllowedError: the batch of sequence ids 3 to 6 .* stored up to 4"
        ):
            await send(producer, 3, highest=6)
        await send(producer, 5, highest=2)  # rule 3.3.3: nonsense counts as absent
        await send(producer, 6)
        assert stored(wires) == 3

    on_broker(test, brokerDeduplicationEnabled=True)


def test_of_a_chunked_message_the_last_chunk_counts() -> None:
    """Only the sequence id of the last chunk of a chunked message is compared and recorded (rule 3.4.7)."""

    async def test(wires: Wires) -> None:
        producer = await (await wires.open()).producer(T, "p")
        for _ in range(2):
            for chunk in range(3):
                metadata = EntryMetadata("p", 0, 1, uuid="u", chunk_id=chunk, num_chunks_from_msg=3)
                say(producer, 0, build_entry(metadata, b"m"), None, is_chunk=True)
                await producer.receipt(0)
        assert stored(wires) == 5
        await send(producer, 1)
        assert stored(wires) == 6

    on_broker(test, brokerDeduplicationEnabled=True)


def test_deduplication_is_switched_while_producers_are_connected() -> None:
    """The policies of namespace and topic switch deduplication for connected producers; what was sent while it was off
    is unknown to it (rule 3.4.1)."""

    async def test(wires: Wires) -> None:
        client = await wires.open()
        producer = await client.producer(T, "p")
        service = wires.world.machine.broker.service
        await send(producer, 0)
        await send(producer, 0)
        assert stored(wires) == 2
        await service.resources.namespaces.update(NAMESPACE, deduplicationEnabled=True)
        await send(producer, 0)
        await send(producer, 0)
        assert stored(wires) == 3
        policy(wires, "deduplicationEnabled", False)
        await send(producer, 0)
        assert stored(wires) == 4
        assert (await client.producer(T, "q")).opened.last_sequence_id == -1
        policy(wires, "deduplicationEnabled", None)
        await send(producer, 0)
        await send(producer, 0)
        assert stored(wires) == 5
        service.unload(TopicName.parse(T))
        assert (await client.producer(T, "p")).opened.last_sequence_id == 0
        service.unload(TopicName.parse(T))
        await service.resources.namespaces.update(NAMESPACE, deduplicationEnabled=False)
        assert (await client.producer(T, "p")).opened.last_sequence_id == -1
        service.unload(TopicName.parse(T))
        await service.resources.namespaces.update(NAMESPACE, deduplicationEnabled=True)
        assert (await client.producer(T, "p")).opened.last_sequence_id == -1

    on_broker(test)


def test_deduplication_forgets_producers_that_are_away_too_long_or_too_many() -> None:
    """Producers that were away too long or are too many are forgotten, connected ones never (rule 3.4.8)."""

    async def test(wires: Wires) -> None:
        client = await wires.open()
        here = await client.producer(T, "here")
        await send(here, 3)
        await leave_behind(client, "a", "b", "c", "d")
        await asyncio.sleep(15)
        # 3 names may be remembered, one of them is connected
        assert [await last(client, name) for name in ("a", "b", "c", "d")] == [-1, -1, 1, 1]
        await asyncio.sleep(59 * 60)
        assert await last(client, "d") == 1
        await asyncio.sleep(70)
        assert await last(client, "c") == -1
        await asyncio.sleep(61 * 60)
        assert await last(client, "d") == -1
        await send(here, 3)
        wires.world.machine.power_off()
        await wires.world.machine.start()
        client = await wires.open()
        assert [await last(client, name) for name in ("a", "c", "here")] == [-1, -1, 3]

    on_broker(
        test,
        brokerDeduplicationEnabled=True,
        brokerDeduplicationMaxNumberOfProducers=3,
        brokerDeduplicationProducerInactivityTimeoutMinutes=60,
    )


def test_producers_of_streaming_queries_are_remembered_for_longer() -> None:
    """Connected producers are not pushed out by others."""

    async def test(wires: Wires) -> None:
        client = await wires.open()
        await client.producer(T, "here")  # an unused topic is removed
        await leave_behind(client, "spark.a", "spark.b", "spark.c", "x", "y", "z")
        await asyncio.sleep(15)
        names = ("spark.a", "spark.b", "spark.c", "x", "y", "z")
        # 2 of each may be remembered
        assert [await last(client, name) for name in names] == [-1, 1, 1, -1, 1, 1]
        await asyncio.sleep(61 * 60)
        assert [await last(client, name) for name in names] == [-1, 1, 1, -1, -1, -1]
        await asyncio.sleep(181 * 60)
        assert [await last(client, name) for name in names] == [-1] * 6

    on_broker(
        test,
        brokerDeduplicationEnabled=True,
        brokerDeduplicationMaxNumberOfProducers=2,
        brokerDeduplicationProducerInactivityTimeoutMinutes=60,
        brokerDeduplicationStreamInactivityTimeoutMinutes=180,
    )


async def leave_behind(client: RawClient, *names: str) -> None:
    for name in names:
        producer = await client.producer(T, name)
        await send(producer, 1)
        await producer.close()


async def last(client: RawClient, name: str) -> int:
    producer = await client.producer(T, name)
    await producer.close()
    return producer.opened.last_sequence_id


def test_messages_larger_than_the_policy_are_refused() -> None:
    """A message above the topic's maxMessageSize is refused; chunks are not (rule 3.3.7)."""

    async def test(wires: Wires) -> None:
        producer = await (await wires.open()).producer(T, "p")
        entry = build_entry(EntryMetadata("p", 0, 1), bytes(100))
        policy(wires, "maxMessageSize", len(entry) - 1)
        say(producer, 0, entry, None)
        with pytest.raises(RawClientError, match="NotAllowedError: Exceed maximum message size"):
            await producer.receipt(0)
        say(producer, 0, entry, None, is_chunk=True)
        await producer.receipt(0)
        policy(wires, "maxMessageSize", len(entry))
        say(producer, 1, entry, None)
        await producer.receipt(1)
        policy(wires, "maxMessageSize", None)
        say(producer, 2, entry + bytes(0), None)
        await producer.receipt(2)

    on_broker(test)


def test_encryption_is_required() -> None:
    """Producers that do not encrypt are refused where encryption is required, and connected ones have to leave (rule
    3.1.7)."""

    async def test(wires: Wires) -> None:
        client = await wires.open()
        plain, careful = await client.producer(T, "p"), await client.producer(T, "q", encrypted=True)
        resources = wires.world.machine.broker.service.resources
        await resources.namespaces.update(NAMESPACE, encryption_required=True)
        assert (await client.hear(c.CommandCloseProducer)).producer_id == plain.producer_id
        with pytest.raises(RawClientError, match=f"MetadataError: Encryption is required in {T}"):
            await client.producer(T, "p")
        say(careful, 0, build_entry(EntryMetadata("q", 0, 1), b"m"), None)
        with pytest.raises(RawClientError, match="MetadataError: Messages must be encrypted"):
            await careful.receipt(0)
        encrypted = EntryMetadata("q", 0, 1, encryption_keys=(EncryptionKey("k", b"v"),))
        say(careful, 0, build_entry(encrypted, b"m"), None)
        await careful.receipt(0)

    on_broker(test)
