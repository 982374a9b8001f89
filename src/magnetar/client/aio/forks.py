"""What becomes of asyncio clients in a process that is forked off: they refuse everything there, at once.

Nothing is closed and the loop is not touched, since sockets and the loop's own list of them are shared with the other
process, which goes on with them.
"""

from __future__ import annotations

import os
import weakref
from typing import Final, Protocol

from magnetar.client.errors import ForkedClientError


class ForkedClient(Protocol):
    """What hears of a fork."""

    def forked(self, error: ForkedClientError) -> None: ...


_OPEN: Final[weakref.WeakSet[ForkedClient]] = weakref.WeakSet()


def opened_here(client: ForkedClient) -> None:
    """Have a client refuse everything in processes that are forked off from now on."""
    _OPEN.add(client)


def clients_here() -> list[ForkedClient]:
    """Return the clients of this process that are still referenced, closed ones too."""
    return list(_OPEN)


def _forked() -> None:
    for client in list(_OPEN):
        client.forked(ForkedClientError("this asyncio client"))


os.register_at_fork(after_in_child=_forked)
