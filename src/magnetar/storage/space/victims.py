"""Which segments are to be emptied, so that the disk holds what lives and not much else. Pure.

A segment is removed when nothing in it is needed; what keeps it can be moved. To move ``living`` bytes out of a segment
of ``size`` frees the difference, so the emptiest come first. Three reasons:

* *sparse*: an eighth of it or less lives. It is worth while at any time: seven bytes come back for each that is moved.
* *crowded*: all of them together are larger than ``AIM`` times what lives in them, and ``slack``. Then at least one of
  them is little more than half alive or less, so every byte that is moved frees about one or more, until the rest fits.
* *crumbs*: there are more than ``CRUMBS_MAX`` small ones. They become one: for the number of files, not for bytes.

So what is left takes at most ``AIM`` times what lives in it plus ``slack``, whatever lived and died in which order: the
model test is `tests/unit/storage/space/test_victims.py`. Twice what lives is promised; a little less is aimed at,
because each byte that dies until the next look takes two from what is allowed.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Final, NamedTuple

SPARSE: Final = 8
"""A segment of which no more than this part lives is always emptied."""
AIM: Final = Fraction(15, 8)
"""So many times what lives may be there. With 2, what died between two looks came on top under a steady load; with this
a fifth more is moved (docs/performance.md, Disk space)."""
CRUMB: Final = 16
"""A segment smaller than this part of ``slack`` is a small one."""
CRUMBS_MAX: Final = 32


class SegmentUse(NamedTuple):
    """A sealed segment in which something lives."""

    number: int
    size: int
    """Its size on disk, with its index."""
    living: int
    """How much of it is needed, at most ``size``."""

    @property
    def share(self) -> float:
        """The part of it that lives."""
        return self.living / self.size if self.size else 1.0


def excess(uses: Iterable[SegmentUse], slack: int) -> int:
    """Bytes beyond ``AIM`` times what lives and ``slack``; below zero if there are fewer."""
    size = living = 0
    for use in uses:
        size += use.size
        living += use.living
    return size - living * AIM.numerator // AIM.denominator - slack


def victims(uses: Iterable[SegmentUse], slack: int) -> list[SegmentUse]:
    """What is to be emptied, in this order."""
    ordered = sorted(uses, key=lambda use: (use.share, use.number))
    # what is moved lies elsewhere afterwards, and takes what it takes
    over = excess(ordered, slack)
    chosen = 0
    for use in ordered:
        if use.living * SPARSE > use.size and over <= 0:
            break
        over -= use.size - use.living
        chosen += 1
    rest = ordered[chosen:]
    crumbs = [use for use in rest if use.size * CRUMB <= slack]
    if len(crumbs) <= CRUMBS_MAX:
        crumbs = []
    return ordered[:chosen] + sorted(crumbs, key=lambda use: use.number)
