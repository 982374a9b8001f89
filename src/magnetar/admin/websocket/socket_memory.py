"""One budget of bytes for what sockets have not delivered: frames on their way out, and messages that wait before them.

- A frame is made when there is room for it, in the order in which sockets asked. One that is larger than the budget has
  all of it.
- A socket whose messages wait for more than its share reads nothing more from the broker.
- A peer that takes a frame too slowly while others wait for room loses its socket, and so do the slowest when all
  together hold twice the budget. Nothing is lost: what was not acknowledged comes again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from magnetar.admin.values.inner_peer import InnerFlow

COPIES: Final = 4
"""How often a frame is in memory while it is made and sent: message, base64, JSON, bytes of the socket."""


class SocketShare:
    """What one socket holds; ``evict`` is called with the reason if it has to go."""

    def __init__(self, memory: SocketMemory, waiting: Callable[[], int], evict: Callable[[str], None]) -> None:
        """``waiting`` says how many bytes of messages wait in the client."""
        self.flow = InnerFlow(self._came)
        self.since = 0.0
        """When the frame that is being sent got its room, in the loop's seconds."""
        self.frame = self.in_hand = 0
        """Bytes of that frame, and of the message that it is made of."""
        self.waiting = waiting
        self.evict = evict
        self._memory = memory
        self._new = 0

    @property
    def held(self) -> int:
        """Bytes in memory for this socket."""
        return max(self.frame, self.in_hand) + self.waiting()

    def _came(self, size: int) -> None:
        self._new += size
        if self._new > self._memory.share and not self.flow.held:
            self._new = self.waiting()
            if self._new > self._memory.share:
                self.flow.hold()
        self._memory.came(size)

    async def reserve(self, size: int) -> None:
        """Wait for room for the frame of a message of ``size`` bytes, which was just taken out of the client."""
        self.in_hand = size
        if self.flow.held and self.waiting() <= self._memory.share // 2:
            self._new = 0
            self.flow.go_on()
        taken = min(size * COPIES, self._memory.most)
        await self._memory.take(taken)
        self.frame, self.since = taken, self._memory.now()

    def end(self) -> None:
        """Hold nothing off any more: what comes is let go unread, until the answers to closing have come."""
        self.waiting = _nothing
        self.flow.go_on()

    def release(self) -> None:
        """Give the room back: the frame is sent or dropped."""
        taken, self.frame, self.in_hand = self.frame, 0, 0
        self._memory.give_back(taken)


def _nothing() -> int:
    return 0


def _uncounted(_: int) -> None:
    return


class SocketMemory:
    """The budget of all sockets of one broker."""

    def __init__(self, most: int, share: int, patience: float) -> None:
        """``most``: bytes of all frames; ``share``: bytes that may wait for one socket; ``patience``: seconds that a
        frame may take while others wait for room."""
        self.most = most
        self.share = share
        self._patience = patience
        self._used = self._new = 0
        self._line: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._shares: dict[SocketShare, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def now(self) -> float:
        """Return the loop's time."""
        return asyncio.get_running_loop().time()

    @property
    def held(self) -> int:
        """Bytes in memory for all sockets."""
        return sum(one.held for one in self._shares)

    def join(self, share: SocketShare) -> None:
        """Count a socket from now on."""
        self._shares[share] = None

    def leave(self, share: SocketShare) -> None:
        """Count it no more."""
        self._shares.pop(share, None)
        share.flow.on_entry = _uncounted  # nothing refers to itself

    def came(self, size: int) -> None:
        """An entry came for a socket; those that are slowest go if it is too much for all."""
        self._new += size
        if self._new < self.most // 8:
            return
        self._new = 0
        held = {one: one.held for one in self._shares}
        total = sum(held.values())
        now = self.now()
        # who has not taken a frame for longest goes first, then who holds most
        for one in sorted(held, key=lambda one: (one.frame and now - one.since, held[one]), reverse=True):
            if total <= 2 * self.most:
                break
            total -= held[one]
            one.evict(
                f"sockets hold more than {2 * self.most} bytes together, this one {held[one]}; take messages faster"
            )

    async def take(self, size: int) -> None:
        """Wait for room, in the order of asking."""
        if not self._line and (not self._used or self._used + size <= self.most):
            self._used += size
            return
        asked: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._line.append((size, asked))
        self._look_later()
        try:
            await asked
        except asyncio.CancelledError:
            if asked.done() and not asked.cancelled():
                self.give_back(size)
            else:
                self._line = deque(one for one in self._line if one[1] is not asked)
                self._serve()
            raise

    def give_back(self, size: int) -> None:
        """Let others have it."""
        self._used -= size
        self._serve()

    def _serve(self) -> None:
        while self._line and (not self._used or self._used + self._line[0][0] <= self.most):
            size, asked = self._line.popleft()
            if not asked.done():
                self._used += size
                asked.set_result(None)

    def _look_later(self) -> None:
        if self._timer is None and self._line:
            self._timer = asyncio.get_running_loop().call_later(self._patience, self._look)

    def _look(self) -> None:
        """While some wait for room, those go whose peers do not take what they got."""
        self._timer = None
        late = self.now() - self._patience
        if self._line:
            for one in [one for one in self._shares if one.frame and one.since <= late]:
                one.evict(f"the peer has not taken a frame for {self._patience:g} s while others wait for memory")
        self._look_later()
