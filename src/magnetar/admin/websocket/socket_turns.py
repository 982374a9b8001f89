"""Turns of WebSockets and of requests: what they bring is handled a little at a time while others wait.

It is what :mod:`magnetar.broker.connection.bounds.turns` is at the other door. Work is counted in units of about five
microseconds. All connections of this door share one round of the event loop; what is left over waits here, in the order
it came, and its connections are not read meanwhile.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final, Protocol

ROUND: Final = 500
"""Units of all connections in one turn of the event loop."""


class TurnTaker(Protocol):
    """A connection with more to handle."""

    def turn(self) -> None:
        """Handle some of them; wait again if there are more."""
        ...


class SocketTurns:
    """Shares each round of the event loop among the connections of one HTTP server."""

    def __init__(self) -> None:
        self.left = ROUND
        """Units of this round."""
        self._waiting: deque[TurnTaker] = deque()
        self._due = False

    def __len__(self) -> int:
        """The number of connections that wait for their turn."""
        return len(self._waiting)

    def spent(self, units: int) -> None:
        """``units`` were worked in this round."""
        self.left -= units
        self._next_round()

    def wait(self, socket: TurnTaker) -> None:
        """Have ``socket`` go on in a later round; it must not wait already."""
        self._waiting.append(socket)
        self._next_round()

    def _next_round(self) -> None:
        if not self._due:
            self._due = True
            asyncio.get_running_loop().call_soon(self._round)

    def _round(self) -> None:
        self._due = False
        self.left = ROUND
        for _ in range(len(self._waiting)):
            if self.left <= 0:
                break
            self._waiting.popleft().turn()
        if self._waiting:
            self._next_round()
