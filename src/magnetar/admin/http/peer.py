"""The peer of a request, for what the broker does in its name."""

from __future__ import annotations

from starlette.requests import HTTPConnection

from magnetar.admin.http.authorization import caller_of
from magnetar.admin.values.inner_peer import InnerPeer
from magnetar.security.identity import Identity

IDENTITY = "identity"
"""Where authentication puts what it found into the state of a request."""


def peer_of(connection: HTTPConnection) -> InnerPeer:
    """Who sent a request, and from where."""
    client = connection.client
    identity = connection.scope.get("state", {}).get(IDENTITY)
    address = ("?", 0) if client is None else (client.host, client.port)
    return InnerPeer(address, caller_of(connection), identity if isinstance(identity, Identity) else None)
