"""Which spans keep which segment on the disk, and how much of a sealed segment lives.

Spans report it themselves, through the store: each one that comes, goes, shrinks or is moved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from magnetar.storage.log.segment import Span
from magnetar.storage.space.victims import SegmentUse

_NEVER: Final = 1 << 62


class Occupancy:
    """The occupancy of one directory; lives on the event loop."""

    def __init__(self) -> None:
        self._spans: dict[int, set[Span]] = {}
        self._living: dict[int, int] = {}
        """Living bytes of segments that take no more entries, once they were asked for."""
        self._moved_to: dict[int, int] = {}
        """For each segment the newest one that holds something which was moved out of it."""
        self._copied: dict[int, int] = {}
        """For each segment the bytes that were moved out of it and lie in it still."""
        self.died = 0
        """Bytes that are needed no more, since it was last set to 0."""
        self.worth = _NEVER
        """When so many have died, :attr:`on_died` is called."""
        self.on_died: Callable[[], object] = int
        self.sizes: dict[int, int] = {}
        """Sizes on disk of segments that take no more entries, with their index."""

    def __contains__(self, number: int) -> bool:
        """Whether anything in the segment is needed."""
        return number in self._spans

    def numbers(self) -> list[int]:
        """Segments of which something is needed."""
        return list(self._spans)

    def spans(self, number: int) -> list[Span]:
        """What is needed of a segment."""
        return list(self._spans.get(number, ()))

    def added(self, span: Span) -> None:
        """A span counts as living in its segment from now on."""
        self._spans.setdefault(span.segment, set()).add(span)
        if span.segment in self._living:
            self._living[span.segment] += span.living

    def dropped(self, span: Span) -> None:
        """The span is needed no more."""
        spans = self._spans.get(span.segment)
        if spans is None or span not in spans:
            return
        spans.discard(span)
        self.shrunk(span, span.living)
        if not spans:
            del self._spans[span.segment]
            self._living.pop(span.segment, None)

    def shrunk(self, span: Span, size: int) -> None:
        """So many bytes of a span are needed no more."""
        if span.segment in self._living:
            self._living[span.segment] -= size
        self.died += size
        if self.died >= self.worth:
            self.died = 0
            self.on_died()

    def moved(self, source: int, target: int, size: int) -> None:
        """So much of segment ``source`` lies in ``target``, too: until checkpoints know, it lies there as well."""
        self._moved_to[source] = max(self._moved_to.get(source, 0), target)
        self._copied[source] = self._copied.get(source, 0) + size
        self.died -= size

    @property
    def copied(self) -> int:
        """Bytes that lie on the disk twice."""
        return sum(self._copied.values())

    def living(self, number: int) -> int:
        """About how many bytes of a segment are needed. Exact counts are kept only of those that take no more."""
        found = self._living.get(number)
        return sum(span.living for span in self._spans.get(number, ())) if found is None else found

    def uses(self) -> list[SegmentUse]:
        """The segments whose size is known and in which something lives."""
        out = []
        for number, size in self.sizes.items():
            if number in self._spans:
                living = self._living[number] = self.living(number)
                out.append(SegmentUse(number, size, min(max(living, 0), size)))
        return out

    def removable(self, number: int, border: int) -> bool:
        """Whether a start from any checkpoint that reaches at least up to segment ``border`` needs nothing of it."""
        return number <= border and number not in self._spans and self._moved_to.get(number, 0) <= border

    def waiting(self, numbers: Iterable[int], border: int) -> int:
        """Bytes of segments that are not needed and are not removable yet."""
        return sum(
            self.sizes.get(number, 0)
            for number in numbers
            if number not in self._spans and not self.removable(number, border)
        )

    def stays(self, number: int) -> None:
        """The segment will not be emptied: what was moved out of it waits for nothing."""
        self._copied.pop(number, None)

    def removed(self, number: int) -> None:
        """The segment is gone."""
        self.sizes.pop(number, None)
        self._moved_to.pop(number, None)
        self._copied.pop(number, None)
