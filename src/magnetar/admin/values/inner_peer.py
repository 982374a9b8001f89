"""For whom a request speaks to the broker: a client within this process acts as that peer, with its rights."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from magnetar.admin.values.inner_flow import InnerFlow
from magnetar.authorization.caller import Caller
from magnetar.security.identity import Identity

if TYPE_CHECKING:
    from magnetar.client.aio.client import Client


class InnerPeer(NamedTuple):
    """The peer of a request."""

    address: tuple[str, int]
    caller: Caller
    identity: Identity | None
    """Its credentials as they were found good; ``None`` without authentication."""
    flow: InnerFlow | None = None
    """What its client reads, where somebody counts that."""


InnerClientMaker: TypeAlias = "Callable[[InnerPeer], Client]"
"""Makes a client of this process that acts as a peer; it connects when something is opened."""
