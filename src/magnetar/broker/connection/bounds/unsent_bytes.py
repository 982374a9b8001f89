"""Bytes on their way to sockets: how many go in one turn of the event loop, and those that clients do not take.

In one turn of the loop all connections together are given a few megabytes, which a system call copies each; what one
connection has ready goes as a whole, the others wait for the next turn.

What clients do not take has one budget for the buffers of all connections together.
The sockets' buffers are counted again whenever an eighth of the budget was written, so the sum is never wrong by more.
Above the budget a connection gets more only if it holds little itself; above twice the budget those that hold most are
closed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, Protocol

LITTLE: Final = 128 << 10
"""Bytes that one connection may always hold."""
ONE_MAX: Final = 32 << 20
"""Bytes that one connection may leave untaken. Only what is sent without a request, changes of topic lists, gets that
far."""
TURN_BYTES: Final = 4 << 20
"""Bytes that sockets are given in one turn of the event loop: a millisecond for a kernel that has the memory at hand,
ten or more for one that has to find it."""
_WRITE_COST: Final = 16 << 10
"""What one write costs besides its bytes: as much as so many of them."""
_RECOUNT_SECONDS: Final = 0.1


class Taker(Protocol):
    """A connection that is being written to."""

    @property
    def unsent(self) -> int:
        """Bytes that its socket has not taken."""
        ...

    def writable_again(self) -> None:
        """More may be put into its outbox."""
        ...

    def takes_too_much(self, unsent: int) -> None:
        """Close it: it holds more than there is for all."""
        ...


class UnsentBytes:
    """The bytes that the clients of one broker have not taken; ``takers`` gives all connections."""

    def __init__(self, most: int, takers: Callable[[], Iterable[Taker]]) -> None:
        self.most = most
        self.short = False
        self.turn_left = TURN_BYTES
        """Bytes that sockets may still be given in this turn of the loop; what is above it waits: :meth:`later`."""
        self._writers: deque[Callable[[], None]] = deque()
        self._takers = takers
        self._counted = 0
        self._since = 0
        self._step = most // 8
        self._denied: dict[Taker, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    @property
    def bytes(self) -> int:
        """The bytes held: an upper bound, exact after a count."""
        return self._counted + self._since

    def later(self, write: Callable[[], None]) -> None:
        """Call ``write`` in another turn of the loop, in the order of the calls: nothing is left of this one."""
        self._writers.append(write)
        if len(self._writers) == 1:
            asyncio.get_running_loop().call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self.turn_left = TURN_BYTES
        writers = self._writers
        try:
            while writers and self.turn_left > 0:
                writers.popleft()()
        finally:
            if writers:
                asyncio.get_running_loop().call_soon(self._next_turn)

    def written(self, size: int) -> None:
        """``size`` bytes were handed to a socket."""
        self.turn_left -= size + _WRITE_COST
        self._since += size
        if self._since >= self._step:
            self.count()

    def denied(self, taker: Taker) -> None:
        """``taker`` gets no more for now."""
        self._denied[taker] = None

    def forget(self, taker: Taker) -> None:
        """``taker`` is not connected any more."""
        self._denied.pop(taker, None)

    def count(self) -> None:
        """Count again what all sockets hold, and close those that hold most if it is too much."""
        held = {taker: taker.unsent for taker in self._takers()}
        self._since = 0
        self._counted = sum(held.values())
        if self._counted > 2 * self.most:
            for taker in sorted(held, key=held.__getitem__, reverse=True):
                if self._counted <= self.most:
                    break
                self._counted -= held[taker]
                taker.takes_too_much(held[taker])
        self.short = self._counted > self.most - self._step
        if self.short:
            if self._timer is None:
                self._timer = asyncio.get_running_loop().call_later(_RECOUNT_SECONDS, self._again)
        elif self._denied:
            denied, self._denied = self._denied, {}
            for taker in denied:
                taker.writable_again()

    def _again(self) -> None:
        self._timer = None
        self.count()
