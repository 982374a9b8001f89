"""Very many names, sorted, of which one comes or goes now and then: lists in pieces, and the hash over all of them.

The names stand in pieces that are never changed but replaced, so that a reader over many turns of the event
loop holds what was there when it began, at the cost of one reference per piece. Each piece remembers the
checksum of everything up to its end: after a change it is worked out again from that piece on.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Final

from crc32c import crc32c

_PIECE: Final = 512
"""Names of a piece that has just been cut; it has twice as many at most."""
_EMPTY: Final = "00000000"


class SortedNames:
    """A set of texts in their order."""

    __slots__ = ("_checksums", "_count", "_lasts", "_pieces")

    def __init__(self, names: Iterable[str] = ()) -> None:
        """``names``: each once, in any order."""
        ordered = iter(sorted(names))
        self._pieces: list[tuple[str, ...]] = []
        while piece := tuple(islice(ordered, _PIECE)):
            self._pieces.append(piece)
        self._lasts = [piece[-1] for piece in self._pieces]
        self._count = sum(map(len, self._pieces))
        self._checksums: list[int] = []
        """The checksum up to the end of each of the first pieces."""

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(list(self._pieces))

    def __contains__(self, name: str) -> bool:
        at = bisect_left(self._lasts, name)
        if at == len(self._lasts):
            return False
        piece = self._pieces[at]
        return piece[bisect_left(piece, name)] == name

    def add(self, name: str) -> bool:
        """Add a name; return whether it was not there."""
        if not self._pieces:
            self._pieces, self._lasts, self._count = [(name,)], [name], 1
            return True
        at = min(bisect_left(self._lasts, name), len(self._lasts) - 1)
        piece = self._pieces[at]
        place = bisect_left(piece, name)
        if place < len(piece) and piece[place] == name:
            return False
        self._replace(at, (*piece[:place], name, *piece[place:]))
        self._count += 1
        return True

    def discard(self, name: str) -> bool:
        """Take a name out; return whether it was there."""
        if name not in self:
            return False
        at = bisect_left(self._lasts, name)
        piece = self._pieces[at]
        place = bisect_left(piece, name)
        self._replace(at, (*piece[:place], *piece[place + 1 :]))
        self._count -= 1
        return True

    def _replace(self, at: int, piece: tuple[str, ...]) -> None:
        parts = [piece] if len(piece) <= 2 * _PIECE else [piece[:_PIECE], piece[_PIECE:]]
        parts = [part for part in parts if part]
        self._pieces[at : at + 1] = parts
        self._lasts[at : at + 1] = [part[-1] for part in parts]
        del self._checksums[at:]

    def pieces(self) -> list[Sequence[str]]:
        """Return all names as they are now, in pieces of some hundred; later changes do not touch them."""
        return list(self._pieces)

    def between(self, start: str, stop: str) -> Iterator[str]:
        """Yield the names from ``start`` on that come before ``stop``."""
        for at in range(bisect_left(self._lasts, start), len(self._pieces)):
            piece = self._pieces[at]
            yield from piece[bisect_left(piece, start) : bisect_left(piece, stop)]
            if piece[-1] >= stop:
                return

    def digest(self) -> str:
        """Return `hex_digest` of all names; only the pieces after the first change since the last time are computed."""
        if not self._pieces:
            return _EMPTY
        for _ in self.digesting():
            pass
        return hex_digest(self._checksums[-1])

    def digesting(self) -> Iterator[int]:
        """Do the work of :meth:`digest` in steps of one piece; each yields how many names it had."""
        while (done := len(self._checksums)) < len(self._pieces):
            piece = self._pieces[done]
            checksum = self._checksums[-1] if done else 0
            self._checksums.append(checksum_of(piece, checksum, first=not done))
            yield len(piece)


def checksum_of(names: Sequence[str], before: int, *, first: bool) -> int:
    """Return CRC32C of the text with checksum ``before`` and these names after it, with commas between all."""
    text = ",".join(names)
    checksum: int = crc32c((text if first else "," + text).encode("utf-8", "surrogatepass"), before)
    return checksum


def hex_digest(checksum: int) -> str:
    """Return the checksum as Guava prints it: little-endian bytes in hex (rule 2.18)."""
    return checksum.to_bytes(4, "little").hex()
