"""Zeros after the log's end, so that the next small groups go where the disk has been written before.

A write that makes a file longer, or is the first to a place, has its sync commit the file system's own journal as well;
one over zeros that are durable waits for its data alone (docs/decisions/064-zeros-ahead.md has what that saves). To
readers of the log, zeros after its end are nothing: a file system may leave them there, too.

Pure: it says which zeros are to be written; :mod:`magnetar.storage.backends.committer` writes them.
"""

from __future__ import annotations

from typing import Final, NamedTuple

_SMALL: Final = 16 << 10
"""A larger group takes its time by its bytes, and writing them twice would cost more than it saves."""
_AHEAD_MAX: Final = 128 << 10
_PAGE: Final = 4096
_REFILL: Final = 4
"""New zeros are written when less than this part of what they were is left."""


class Zeros(NamedTuple):
    """So many zeros from byte ``at`` on."""

    at: int
    size: int


NO_ZEROS: Final = Zeros(0, 0)


class ZerosAhead:
    """Decides for one segment after another; in the long run there are no more zeros than bytes in small groups."""

    __slots__ = ("_calm", "_end", "written")

    def __init__(self) -> None:
        self._end = 0
        """Where the zeros end."""
        self._calm = 0
        """Bytes of this segment's small groups since its last large one."""
        self.written = 0
        """Bytes of zeros that were asked for in all."""

    def segment_begun(self) -> None:
        """The next group goes to another segment, which has no zeros yet."""
        self._end = self._calm = 0

    def after(self, end: int, size: int) -> Zeros:
        """Return the zeros to be written after a group of ``size`` bytes that ends at ``end``."""
        if size > _SMALL:
            self._calm = 0
            return NO_ZEROS
        self._calm += size
        if self._calm < _PAGE:
            return NO_ZEROS
        wanted = min(self._calm, _AHEAD_MAX)
        if (self._end - end) * _REFILL > wanted:
            return NO_ZEROS
        # whole pages: what is left of the last one has never been written
        at = max(self._end, -(-end // _PAGE) * _PAGE)
        self._end = at + wanted // _PAGE * _PAGE
        self.written += self._end - at
        return Zeros(at, self._end - at)
