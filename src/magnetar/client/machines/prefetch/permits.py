"""The permits of one consumer on one topic or partition: how many messages the broker may send (rules of 5.2).

With a queue each permit is with the broker, with a message that waits, or to be given back, which it is as soon as half
of them are. Without one there are none until one is asked for; an entry of several messages takes as many, so that the
next time the broker is given what it lacks to have one.
"""

from __future__ import annotations


class Permits:
    """What was granted, and what is to be given back."""

    __slots__ = ("_size", "freed", "granted", "overdrawn")

    def __init__(self, size: int) -> None:
        """``size``: messages of the queue; 0: there is none."""
        self._size = size
        self.granted = 0
        """What the broker has and has not used yet, as far as is known; an entry may take more than there are."""
        self.freed = 0
        """What is to be given back."""
        self.overdrawn = 0
        """What was given back for messages that were put back."""

    def opened(self) -> None:
        """Begin on a new connection."""
        self.freed = self._size
        self.granted = 0

    def lost(self) -> None:
        """End with the connection."""
        self.granted = self.freed = 0

    def charge(self, messages: int, live: int) -> None:
        """Note an entry that has come; ``live``: its messages that are not acknowledged, which alone the broker
        charges. A queue gives the others back, too (rule 5.7.8)."""
        self.granted -= messages if self._size else live

    def free(self, permits: int) -> None:
        """Note permits of messages that will not be taken."""
        if self._size:
            self.freed += permits

    def taken(self, permits: int) -> None:
        """Note permits of messages that were taken."""
        if self._size:
            owed = min(permits, self.overdrawn)
            self.overdrawn -= owed
            self.freed += permits - owed

    def put_back(self, permits: int) -> None:
        """Note messages that were put back, whose permits were given back already."""
        if self._size:
            self.overdrawn += permits

    @property
    def one_may_come(self) -> bool:
        """Whether the broker may send an entry, or will get a permit for one."""
        return self.granted + self.freed > 0

    def ask_one(self) -> None:
        """Have the broker send one entry, where there is no queue, unless one may come already."""
        if not self._size and self.granted + self.freed <= 0:
            self.freed = 1 - self.granted

    def flow(self) -> int:
        """Return what is to be given back now, 0 if that is too little, and note it as given."""
        found = self.freed
        if not found or found * 2 < self._size:
            return 0
        self.granted += found
        self.freed = 0
        return found

    def check(self, held: int) -> None:
        """Assert what must always hold; ``held``: messages that wait."""
        assert self.freed >= 0
        if self._size:
            assert self.granted + self.freed + held - self.overdrawn == self._size
        else:
            assert self.granted + self.freed <= 1
