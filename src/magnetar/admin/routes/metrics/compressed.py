"""/metrics with gzip, and an answer that is kept for a while (``metricsBufferResponse``)."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Callable
from typing import Final

_GZIP: Final = 31
"""zlib's word for the format of gzip with the largest window."""
_LEVEL: Final = 1
"""The lines are so alike that a higher level costs much and brings little."""


def takes_gzip(accepted: str) -> bool:
    """Whether an Accept-Encoding header allows gzip."""
    for part in accepted.split(","):
        word, _, quality = part.strip().lower().partition(";")
        if word.strip() in ("gzip", "*"):
            return quality.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


async def compressed(pieces: AsyncIterator[str]) -> AsyncIterator[bytes]:
    """The text as one gzip stream, sent as it comes."""
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    async for piece in pieces:
        packed = packer.compress(piece.encode())
        if packed:
            yield packed
    yield packer.flush()


class KeptAnswer:
    """One answer for all who ask within ``seconds``; it is kept compressed, as a tenth of its size."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._made_at = 0.0
        self._packed: list[bytes] = []
        self._one = asyncio.Lock()

    async def pieces(self, make: Callable[[], AsyncIterator[str]], *, encoded: bool) -> AsyncIterator[bytes]:
        """What is kept, made anew if it is too old; ``encoded``: as it is kept."""
        async with self._one:
            now = asyncio.get_running_loop().time
            if not self._packed or now() - self._made_at >= self._seconds:
                self._packed = [piece async for piece in compressed(make())]
                self._made_at = now()
            packed = self._packed
        unpacker = zlib.decompressobj(_GZIP)
        for piece in packed:
            yield piece if encoded else unpacker.decompress(piece)
            await asyncio.sleep(0)
