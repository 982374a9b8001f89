"""For whom a request speaks to the broker: a client within this process acts as that peer, with its rights."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

from magnetar.authorization.caller import Caller
from magnetar.security.identity import Identity

if TYPE_CHECKING:
    from magnetar.client.aio.client import Client


class InnerFlow:
    """Of one client: hears of each entry that comes, and can have the client's connection not read.

    Bytes that are not read stay at the broker's end, which stops there as for every slow client.
    """

    def __init__(self, on_entry: Callable[[int], None]) -> None:
        """``on_entry`` gets the size of each entry, in bytes, when it is in the client's memory."""
        self.on_entry = on_entry
        self.held = False
        self._transport: asyncio.Transport | None = None

    def attach(self, transport: asyncio.Transport) -> None:
        """Go on with a new connection, on which nothing has come yet."""
        self._transport = transport
        self.held = False

    def hold(self) -> None:
        """Read nothing for now; nor are answers to requests."""
        self.held = True
        if self._transport is not None:
            self._transport.pause_reading()

    def go_on(self) -> None:
        """Read again."""
        self.held = False
        if self._transport is not None:
            self._transport.resume_reading()


class InnerPeer(NamedTuple):
    """The peer of a request."""

    address: tuple[str, int]
    caller: Caller
    identity: Identity | None
    """Its credentials as they were found good; ``None`` without authentication."""
    flow: InnerFlow | None = None
    """What its client reads, where that is counted."""


class InnerClientMaker(Protocol):
    """Makes clients of this process."""

    async def ready(self) -> None:
        """Return when what a client is made of is imported, which the loop would not have time for."""
        ...

    def __call__(self, peer: InnerPeer) -> Client:
        """A client that acts as a peer; it connects when something is opened. After :meth:`ready`."""
        ...
