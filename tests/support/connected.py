"""A raw client of a broker on a port, closed in any case."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from magnetar.testing.rawclient import RawClient


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[RawClient]:
    """A client that is closed whatever happens."""
    client = await RawClient.open("127.0.0.1", port)
    try:
        await client.connect()
        yield client
    finally:
        await client.close()
