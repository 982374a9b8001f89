"""One budget for the frames that producers' sockets have handed on and that are not stored yet.

When it is used up, a socket hands its next frame on as soon as there is room, in the order in which sockets asked, or
as soon as none of its own is under way: a topic that takes nothing at the moment slows the others' sockets, and stops
none of them.
"""

from __future__ import annotations

from magnetar.runtime.event import Event


class ProduceMemory:
    """The budget of all producers' sockets of one broker; lives on the event loop."""

    def __init__(self, most: int) -> None:
        """``most``: characters of frames; the frame that passes it is let in whole."""
        self._most = most
        self.held = 0
        """Characters of the frames that are under way."""
        self._line: dict[Event, None] = {}
        """Who waits for room, first come first."""

    @property
    def full(self) -> bool:
        """Whether a frame has to wait."""
        return self.held >= self._most

    def wait(self, woken: Event) -> None:
        """Stand in line, or stay there: ``woken`` is set once when there is room."""
        self._line.setdefault(woken)

    def take(self, woken: Event, size: int) -> None:
        """A frame is handed on; the callers of ``woken`` wait no longer."""
        self._line.pop(woken, None)
        self.held += size
        self._wake()

    def give_back(self, size: int) -> None:
        """So much of it is stored, or never will be."""
        self.held -= size
        self._wake()

    def leave(self, woken: Event, size: int) -> None:
        """A socket ends with ``size`` characters under way."""
        self._line.pop(woken, None)
        self.give_back(size)

    def _wake(self) -> None:
        """Wake the first in line if there is room; when it takes some, the next is woken."""
        if self._line and not self.full:
            first = next(iter(self._line))
            del self._line[first]
            first.set()
