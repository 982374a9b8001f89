"""Reading what a broker sends, thousands of frames at a time.

Frames that follow each other are nearly always alike: same sizes, same fields, same varint widths; only the values
differ. ``Scanner.scan`` finds such runs in a receive buffer and hands them out as a matrix of bytes, one row per
frame, whose columns are decoded with a few array operations. The cost per frame is a few tens of nanoseconds in long
runs; a run of one frame is the general case and costs some microseconds.

That rows are alike is proved, not assumed: the first frame is walked field by field, which gives a mask that keeps
sizes, tags, lengths and the continuation bits of varints, and a run ends at the first row that differs under it. Since
frame ``i`` is looked at only where ``i`` equal frames end, the offsets are exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.load import wire
from benchmarks.load.wire import Command

Bytes2D = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Path = tuple[int, ...]

RUN_FRAMES_MAX = 2048

NESTED: frozenset[Path] = frozenset(
    {
        (Command.SEND,),
        (Command.SEND_RECEIPT,),
        (Command.SEND_RECEIPT, 3),
        (Command.MESSAGE,),
        (Command.MESSAGE, 2),
        (Command.ACK,),
        (Command.ACK, 3),
        (Command.FLOW,),
    }
)


@dataclass(frozen=True, eq=False)
class Layout:
    """The places of the fields of one kind of frame, counted from the frame's start (its two size words included)."""

    kind: int
    width: int
    mask: npt.NDArray[np.uint64]  # over the first ``width`` bytes, padded to whole words
    expected: npt.NDArray[np.uint64]
    values: dict[Path, tuple[int, int]]  # varints: start, end
    spans: dict[Path, tuple[int, int]]  # nested messages: start, end


@dataclass(frozen=True, eq=False)
class Run:
    """``count`` frames of one layout, ``stride`` bytes apart, in a buffer that is valid until the next receive."""

    layout: Layout
    buffer: bytearray
    offset: int
    stride: int
    count: int
    rows: Bytes2D

    def column(self, *path: int) -> Ints:
        """The values of a varint field; 0 where the frames have no such field."""
        place = self.layout.values.get(path)
        if place is None:
            return np.zeros(self.count, np.int64)
        start, end = place
        out = (self.rows[:, start] & 0x7F).astype(np.int64)
        for at in range(start + 1, end):
            out |= (self.rows[:, at] & 0x7F).astype(np.int64) << (7 * (at - start))
        return out

    def numbers(self) -> Ints:
        """The last eight bytes of each frame: the numbers that ``entries`` put there."""
        array = np.ndarray((self.count,), ">i8", self.buffer, self.offset + self.stride - 8, (self.stride,))
        return array.astype(np.int64)

    def command(self, row: int = 0) -> bytes:
        return bytes(self.rows[row, 8 : self.layout.width])

    def entry(self, row: int = 0) -> bytes:
        """Everything after the command."""
        start = self.offset + row * self.stride
        return bytes(self.buffer[start + self.layout.width : start + self.stride])


def _walk(
    data: bytes, at: int, end: int, path: Path, mask: bytearray, values: dict[Path, tuple[int, int]],
    spans: dict[Path, tuple[int, int]],
) -> None:  # fmt: skip
    for number, wire_type, _, start, stop in wire.fields(data, at, end):
        here = (*path, number)
        if wire_type == wire.VARINT:
            if here != (1,):  # the command's type stays under the full mask
                mask[start:stop] = b"\x80" * (stop - start)
            values[here] = (start, stop)
        elif here in NESTED:
            spans[here] = (start, stop)
            _walk(data, start, stop, here, mask, values, spans)
        else:
            mask[start:stop] = bytes(stop - start)


def layout_of(data: bytes) -> Layout:
    """The layout of a frame, given as its two size words and its command."""
    mask = bytearray(b"\xff" * len(data))
    values: dict[Path, tuple[int, int]] = {}
    spans: dict[Path, tuple[int, int]] = {}
    _walk(data, 8, len(data), (), mask, values, spans)
    if (1,) not in values:
        raise wire.WireError(f"not a command: {data[:40].hex()}")
    kind = wire.read_varint(data, values[(1,)][0])[0]
    padding = bytes(-len(data) % 8)
    words = np.frombuffer(bytes(mask) + padding, np.uint64)
    expected = np.frombuffer(data + padding, np.uint64) & words
    return Layout(kind, len(data), words, expected, values, spans)


class Scanner:
    """Finds runs; keeps the layouts that it saw last, because they come again."""

    def __init__(self) -> None:
        self._layouts: dict[tuple[int, int], list[Layout]] = {}
        self.position = 0

    def scan(self, buffer: bytearray, start: int, end: int) -> Iterator[Run]:
        """Runs of whole frames in [start, end); ``position`` then says where the unfinished rest begins."""
        self.position = start
        while end - self.position >= 8:
            start = self.position
            total, size = wire.HEAD.unpack_from(buffer, start)
            stride, width = total + 4, size + 8
            if size + 4 > total or stride > len(buffer):
                raise wire.WireError(f"frame of {total} bytes with a command of {size}")
            whole = (end - start) // stride
            if not whole:
                return
            if whole > 1 and buffer[start : start + 8] != buffer[start + stride : start + stride + 8]:
                whole = 1  # the common exception, found before any array is made
            whole = min(whole, RUN_FRAMES_MAX)
            yield self._run(buffer, start, stride, width, whole)

    def _run(self, buffer: bytearray, start: int, stride: int, width: int, whole: int) -> Run:
        rows = np.zeros((whole, (width + 7) // 8 * 8), np.uint8)
        rows[:, :width] = np.ndarray((whole, width), np.uint8, buffer, start, (stride, 1))
        words = rows.view(np.uint64)
        layout = self._layout(buffer, start, stride, width, words[0])
        if whole > 1:
            same = (words & layout.mask) == layout.expected
            alike = same[:, 0]
            for column in range(1, same.shape[1]):
                alike = alike & same[:, column]
            if not alike.all():
                whole = int(alike.argmin())
                rows = rows[:whole]
        self.position = start + whole * stride
        return Run(layout, buffer, start, stride, whole, rows)

    def _layout(self, buffer: bytearray, start: int, stride: int, width: int, first: npt.NDArray[np.uint64]) -> Layout:
        known = self._layouts.setdefault((stride, width), [])
        for layout in known:
            if np.array_equal(first & layout.mask, layout.expected):
                return layout
        layout = layout_of(bytes(buffer[start : start + width]))
        known.insert(0, layout)
        del known[8:]
        return layout
