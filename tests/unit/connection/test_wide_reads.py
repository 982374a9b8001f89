"""Connections of very many producers read more at once, as long as there is memory for it (decision 060), and those of
large messages into memory that all share (decision 081)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

from magnetar.broker.connection.bounds.wide_reads import MANY_PRODUCERS, USUAL, WIDE, ViewedReads, WideReads
from magnetar.broker.connection.listener import Connections, Listener
from magnetar.protocol import codec
from magnetar.protocol import commands as c
from magnetar.protocol.decoder import SLICE_BYTES
from magnetar.testing.rawclient import make_entry
from tests.support.connections import WINDOW, fake_service, hang_up, publisher, sends
from tests.support.real_broker import RealBroker, run_on_broker


class ChangedProtocol:
    """What a socket's transport was given in its listener's place."""

    def __init__(self, listener: Listener) -> None:
        self.found: list[asyncio.BaseProtocol] = []
        cast(Any, listener.session.transport).set_protocol = self.found.append


def test_messages_of_many_producers_are_read_in_larger_pieces() -> None:
    async def scenario() -> None:
        service = fake_service(maxPendingPublishRequestsPerConnection=WINDOW, maxMessagePublishBufferSizeInMB=1)
        listener, transport, _, published = publisher(Connections(), service)
        changed = ChangedProtocol(listener)
        listener.data_received(sends(WINDOW))
        assert not changed.found, "it has one producer"
        producers = listener.session.producers
        producers.update(dict.fromkeys(range(2, MANY_PRODUCERS + 1), producers[1]))
        listener.data_received(sends(WINDOW - 1, WINDOW))
        (wide,) = changed.found
        assert isinstance(wide, WideReads)
        assert not transport.reading, "the limit holds as before"
        assert listener._protocol.slice_bytes == WIDE
        assert len(wide.get_buffer(65536)) == WIDE

        piece = sends(3, 2 * WINDOW - 1)
        memoryview(wide.get_buffer(65536))[: len(piece)] = piece
        wide.buffer_updated(len(piece))
        wide.data_received(sends(1, 2 * WINDOW + 2))
        assert published == list(range(2 * WINDOW + 3))
        assert len(changed.found) == 1

        service.store.journal.pending_bytes = 1 << 19
        assert len(wide.get_buffer(65536)) == USUAL, "memory is short"
        wide.connection_lost(None)
        assert listener.session.closed

    asyncio.run(scenario())


def test_few_producers_leave_the_slices_as_they_are() -> None:
    async def scenario() -> None:
        listener, _, _, _ = publisher(Connections())
        listener.data_received(sends(WINDOW))
        assert listener._protocol.slice_bytes == SLICE_BYTES
        hang_up(listener)

    asyncio.run(scenario())


def test_a_socket_whose_reads_became_larger_loses_nothing(tmp_path: Path) -> None:
    """Thousands of messages of many producers in one write: each has its receipt, in order, with ids in order."""
    producers, each = MANY_PRODUCERS, 40
    topic = "persistent://public/default/wide-{}"

    async def steps(broker: RealBroker) -> None:
        client = await broker.client()
        for number in range(producers):
            command = c.CommandProducer(topic=topic.format(number), producer_id=number, request_id=client.new_id())
            await client.request(command, c.CommandProducerSuccess)
        (listener,) = (one for one in broker.node.broker.connections if one.session.producers)
        client.say(
            *(
                c.CommandSend(
                    number % producers, number // producers, 1, None, False, None, False, None,
                    make_entry(b"x" * 100, producer="p", sequence_id=number // producers),
                )
                for number in range(producers * each)
            )
        )  # fmt: skip
        receipts: dict[int, list[tuple[int, int]]] = {number: [] for number in range(producers)}
        for _ in range(producers * each):
            got = await client.hear(c.CommandSendReceipt)
            assert got.message_id is not None
            receipts[got.producer_id].append((got.sequence_id, got.message_id.entry))
        assert set(map(tuple, receipts.values())) == {tuple((number, number) for number in range(each))}
        assert listener._protocol.slice_bytes == WIDE, "the test is about larger reads"
        assert listener.session.pending_publishes == 0
        assert listener.session.reading

    run_on_broker(tmp_path, steps)


def test_a_transport_that_keeps_its_protocol_reads_as_before() -> None:
    async def scenario() -> None:
        listener, _, _, published = publisher(Connections())
        listener.session.producers.update(dict.fromkeys(range(2, MANY_PRODUCERS + 1), listener.session.producers[1]))
        listener.data_received(sends(WINDOW))
        assert len(published) == WINDOW
        assert not listener.session.closed
        hang_up(listener)

    asyncio.run(scenario())


def large(number: int) -> bytes:
    """A SEND of producer 1 that comes in several reads."""
    entry = make_entry(bytes([number]) * 100_000, producer="p", sequence_id=number)
    return codec.encode(c.CommandSend(1, number, 1, None, False, None, False, None, entry))


def test_a_connection_of_large_messages_is_given_views_of_what_was_read() -> None:
    async def scenario() -> None:
        listener, _, _, published = publisher(Connections())
        changed = ChangedProtocol(listener)
        listener.data_received(large(0))
        assert not changed.found, "it came in one read"
        listener.data_received(large(1)[:50_000])
        listener.data_received(large(1)[50_000:])
        (viewed,) = changed.found
        assert isinstance(viewed, ViewedReads)
        assert not isinstance(viewed, WideReads)
        assert listener._protocol.slice_bytes == SLICE_BYTES
        room = viewed.get_buffer(65536)
        assert len(room) == USUAL
        both = large(2) + large(3)
        for piece in (both[:120_000], both[120_000:]):
            memoryview(room)[: len(piece)] = piece
            viewed.buffer_updated(len(piece))
            memoryview(room)[: len(piece)] = bytes(len(piece))
        assert published == [0, 1, 2, 3]
        assert len(changed.found) == 1
        hang_up(listener)

    asyncio.run(scenario())


def test_a_socket_of_large_messages_loses_nothing(tmp_path: Path) -> None:
    """What was stored is what was sent, entry by entry, while two connections are read into the same memory."""

    async def steps(broker: RealBroker) -> None:
        clients = [await broker.client() for _ in range(2)]
        reader = await broker.client()
        sent: dict[int, list[bytes]] = {}
        for number, client in enumerate(clients):
            topic = f"persistent://public/default/large-{number}"
            command = c.CommandProducer(topic=topic, producer_id=number, request_id=client.new_id())
            await client.request(command, c.CommandProducerSuccess)
            consumer = await reader.subscribe(topic, f"s{number}")
            reader.say(c.CommandFlow(consumer.consumer_id, 1_000))
            sent[number] = [
                make_entry(bytes([number, i]) * (20_000 + 10_007 * (i % 5)), producer="p", sequence_id=i)
                for i in range(40)
            ]
        for number, client in enumerate(clients):
            fields = (1, None, False, None, False, None)
            client.say(*(c.CommandSend(number, i, *fields, entry) for i, entry in enumerate(sent[number])))
        for client in clients:
            for i in range(40):
                assert (await client.hear(c.CommandSendReceipt)).sequence_id == i
        viewed = [one for one in broker.node.broker.connections if one.session.producers]
        assert all(one._viewed for one in viewed), "the test is about views"
        found: dict[int, list[bytes]] = {}
        for _ in range(80):
            message = await reader.hear(c.CommandMessage)
            found.setdefault(message.consumer_id, []).append(message.entry)
        assert sorted(found.values()) == sorted(sent.values())

    run_on_broker(tmp_path, steps)
