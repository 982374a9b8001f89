"""A transport that notes what is written to it, connections on it, and a broker's service without topics or a disk."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any, cast

from typing_extensions import override

from magnetar.broker.connection.listener import Connections, Listener
from magnetar.broker.connection.producer_outbox import ProducerOutbox
from magnetar.broker.service import BrokerService
from magnetar.broker.topic.publish.producer import Producer
from magnetar.config.settings import Settings
from magnetar.protocol import codec
from magnetar.protocol import commands as c
from magnetar.protocol.decoder import Decoder
from magnetar.testing.rawclient import make_entry

PING = codec.encode(c.CommandPing())
ENTRY = make_entry(b"x", producer="p", sequence_id=1)
WINDOW = 10
"""Pending publishes that a publisher's connection may have."""


class FakeTransport(asyncio.Transport):
    """``taken`` are the bytes that the other side has read of those written; all of them unless it is ``deaf``."""

    def __init__(self, protocol: asyncio.Protocol, *, deaf: bool = False) -> None:
        super().__init__({"peername": ("10.0.0.1", 5000)})
        self.protocol = protocol
        self.deaf = deaf
        self.written = bytearray()
        self.unsent = 0
        self.reading = True
        self.closing = False
        self.aborted = False
        self.high = 1 << 16
        self.low: int | None = None

    @override
    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        assert high is not None
        self.high, self.low = high, low

    @override
    def get_write_buffer_size(self) -> int:
        return self.unsent

    @override
    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        self.written += data
        if self.deaf:
            before, self.unsent = self.unsent, self.unsent + len(data)
            if before <= self.high < self.unsent:
                self.protocol.pause_writing()

    @override
    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview[Any]]) -> None:
        self.write(b"".join(list_of_data))

    def take(self) -> None:
        """The other side reads all there is."""
        before, self.unsent = self.unsent, 0
        if before > self.high:
            self.protocol.resume_writing()

    @override
    def pause_reading(self) -> None:
        self.reading = False

    @override
    def resume_reading(self) -> None:
        self.reading = True

    @override
    def is_closing(self) -> bool:
        return self.closing

    @override
    def close(self) -> None:
        self.closing = True

    @override
    def abort(self) -> None:
        self.closing = self.aborted = True

    def heard(self) -> list[c.Command]:
        """The commands that were sent to the client so far."""
        return Decoder().feed(bytes(self.written))


def fake_service(**settings: Any) -> BrokerService:
    chosen = Settings(**settings)
    complaints: list[str] = []
    return cast(
        BrokerService,
        SimpleNamespace(
            settings=chosen,
            authorizer=None,
            store=SimpleNamespace(journal=SimpleNamespace(pending_bytes=0)),
            complaints=SimpleNamespace(
                warning=lambda kind, message, *args, extra=None: complaints.append(message % args)
            ),
            said=complaints,
            pending_publishes_high=chosen.maxPendingPublishRequestsPerConnection or sys.maxsize,
            pending_publishes_low=(chosen.maxPendingPublishRequestsPerConnection or sys.maxsize) // 2,
            pending_bytes_high=chosen.publish_buffer_bytes,
            producer_left=lambda producer: None,
            authentication=None,
        ),
    )


def connected(
    connections: Connections, service: BrokerService | None = None, *, deaf: bool = False
) -> tuple[Listener, FakeTransport]:
    """A listener after its handshake; needs a running loop."""
    listener = Listener(service or fake_service(), connections)
    transport = FakeTransport(listener, deaf=deaf)
    listener.connection_made(transport)
    listener.data_received(codec.encode(c.CommandConnect("test", 21)))
    return listener, transport


def hang_up(*listeners: Listener) -> None:
    """Their timers end, so that nothing waits for them."""
    for listener in listeners:
        listener.connection_lost(None)


async def until(done: Callable[[], bool]) -> None:
    """Turns of the loop until ``done``."""
    for _ in range(10_000):
        if done():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never comes to an end")


def sends(count: int, first: int = 0) -> bytes:
    """So many SENDs of producer 1, as bytes."""
    fields = (1, None, False, None, False, None, ENTRY, True)
    return b"".join(codec.encode(c.CommandSend(1, first + i, *fields)) for i in range(count))


def publisher(
    connections: Connections, service: Any = None
) -> tuple[Listener, FakeTransport, ProducerOutbox, list[int]]:
    """A connection with one open producer that notes what is published."""
    service = service or fake_service(maxPendingPublishRequestsPerConnection=WINDOW)
    listener, transport = connected(connections, service)
    published: list[int] = []
    producer = Producer.__new__(Producer)
    cast(Any, producer).publish = lambda message: published.append(message.sequence_id)
    listener.session.producers[1] = producer
    return listener, transport, ProducerOutbox(listener.session, 1, cast(Any, None)), published


def pongs(transport: FakeTransport) -> int:
    """PONGs that were written to the client."""
    return sum(isinstance(command, c.CommandPong) for command in transport.heard())
