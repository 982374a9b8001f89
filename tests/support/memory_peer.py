"""A client whose bytes go through memory to a broker in this process: what the broker does is all that is done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from magnetar.broker.connection.listener import Listener
from magnetar.protocol import codec
from magnetar.protocol import commands as c
from magnetar.protocol.decoder import Decoder
from tests.support.connections import FakeTransport
from tests.support.real_broker import RealBroker


class MemoryPeer:
    """A client of the broker whose bytes go through memory."""

    def __init__(self, broker: RealBroker) -> None:
        self.listener = Listener(broker.node.broker.service, broker.node.broker.connections)
        self.transport = FakeTransport(self.listener)
        self.listener.connection_made(self.transport)
        self._decoder, self._heard = Decoder(), 0
        self.say(c.CommandConnect("test", 21))

    def say(self, *commands: c.Command) -> None:
        self.listener.data_received(b"".join(map(codec.encode, commands)))

    @property
    def unheard(self) -> int:
        """Bytes that came since the last look."""
        return len(self.transport.written) - self._heard

    def hear(self) -> list[c.Command]:
        """Return the commands that came since the last look."""
        new = bytes(self.transport.written[self._heard :])
        self._heard += len(new)
        return self._decoder.feed(new)

    async def answered(self, kind: type[c.Command]) -> None:
        """Wait until one of that kind came."""
        await when(lambda: any(isinstance(one, kind) for one in self.hear()))


async def when(done: Callable[[], bool]) -> None:
    """Wait until it is, twenty seconds at most."""
    async with asyncio.timeout(20):
        while not done():  # noqa: ASYNC110  # an Event would need somebody to set it
            await asyncio.sleep(0.0005)
