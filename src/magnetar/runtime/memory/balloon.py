"""A memory balloon: pages of Python's arenas that no object uses go back to the system, although the arenas stay.

Python gives an arena of 1 MB back when no block of it is in use. After a burst each of many arenas is held by one small
object that lives on, and most of their pools of 16 KB are wholly free: Python keeps these, resident, for what comes
next.

A balloon in a virtual machine takes memory that nothing there uses, so that its host can use it. So here: the balloon
allocates the free places as blocks of 512 bytes until Python would map another arena, and tells the system that the
pages which lie wholly within its own blocks need not be kept (``MADV_DONTNEED``). These are two of the four pages of a
pool: the others have bytes of Python's. What it allocated it frees when it is emptied. Nothing here knows how Python
arranges its memory: whoever has allocated a block may lose what is in it. How much is gained depends on it, no more.
"""

from __future__ import annotations

import asyncio
import ctypes
import mmap
import sys
from array import array
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

BLOCK: Final = 512
"""Bytes; Python has larger ones from the C library, which gives back pages itself."""
BYTES_MAX: Final = 64 << 20
"""What one balloon takes at most: some 150 ms of processor time, in slices, each time it is filled and emptied."""
_SLICE: Final = 31 * 32
"""Blocks that are allocated at one go, those of 32 pools: under a millisecond."""

_STATM: Final = Path("/proc/self/statm")
_PAGE: Final = mmap.PAGESIZE
_NEW_PAGES: Final = (256 << 10) // _PAGE
"""Growth by which places are new: half of a slice. The heap of the C library may grow by half of that meanwhile."""


class Balloon:
    """What one process has taken out of use; empty where the system is not Linux or the interpreter not CPython."""

    def __init__(self) -> None:
        self._blocks = array("Q")
        self._works = sys.platform == "linux" and sys.implementation.name == "cpython"

    @property
    def blocks(self) -> int:
        """Blocks that it holds."""
        return len(self._blocks)

    async def fill(self) -> int:
        """Take what is free, in slices; return how many bytes the system got back."""
        given, loose = 0, array("Q")
        while self._works and len(self._blocks) + len(loose) < BYTES_MAX // BLOCK:
            mapped = _mapped_pages()
            taken = sorted(_allocate(BLOCK) for _ in range(_SLICE))
            grown = _mapped_pages() - mapped
            if not mapped or not -mapped < grown < _NEW_PAGES:  # these are no free places but new, or nobody can tell
                loose.extend(taken)
                break
            for start, end in _runs(taken):
                blocks, pages = range(start, end, BLOCK), _pages_within(start, end)
                if pages is None:
                    loose.extend(blocks)
                elif _dismiss(*pages):
                    given += pages[1] - pages[0]
                    self._blocks.extend(blocks)
                else:
                    self._works = False
                    loose.extend(blocks)
            await asyncio.sleep(0)
        await _freed(loose)
        return given

    async def empty(self) -> None:
        """Free all that it holds, in slices: Python may use it again, or give back its arenas."""
        blocks, self._blocks = self._blocks, array("Q")
        await _freed(blocks)


def _runs(blocks: Iterable[int]) -> Iterable[tuple[int, int]]:
    """Blocks that lie one behind another, from sorted addresses: of each run the start and the end."""
    start = end = 0
    for block in blocks:
        if block != end:
            if end:
                yield start, end
            start = block
        end = block + BLOCK
    if end:
        yield start, end


def _pages_within(start: int, end: int) -> tuple[int, int] | None:
    """Where the first page begins and the last one ends that lie wholly between two addresses."""
    first, last = -(-start // _PAGE) * _PAGE, end // _PAGE * _PAGE
    return (first, last) if first < last else None


async def _freed(blocks: array[int]) -> None:
    while blocks:
        for block in blocks[-_SLICE:]:
            _free(block)
        del blocks[-_SLICE:]
        await asyncio.sleep(0)


def _mapped_pages() -> int:
    """Pages of the address space in use: more when Python mapped an arena, or the C library grew its heap.

    0 where the system does not say.
    """
    try:
        return int(_STATM.read_bytes().split(None, 1)[0])
    except OSError:
        return 0


def _dismiss(start: int, end: int) -> bool:
    """Tell the system that what is between two pages need not be kept."""
    return bool(_library.madvise(start, end - start, mmap.MADV_DONTNEED) == 0)


def _function(name: str, result: Any, *arguments: Any) -> Any:
    function = getattr(ctypes.pythonapi, name)
    function.restype, function.argtypes = result, arguments
    return function


_allocate: Final = _function("PyObject_Malloc", ctypes.c_size_t, ctypes.c_size_t)
_free: Final = _function("PyObject_Free", None, ctypes.c_size_t)
_library: Final = ctypes.CDLL(None)
if hasattr(_library, "madvise"):
    _library.madvise.argtypes = (ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int)
