"""Payload compression exactly as Pulsar's clients do it (rules of 3.7).

    LZ4     a raw block: no frame, no length, the size comes from uncompressed_size
    ZLIB    an RFC 1950 stream
    ZSTD    a standard frame, level 3, with or without the content size inside
    SNAPPY  a raw block: varint length and body, not the framing format

``uncompressed_size`` is what the message says and is not believed: nothing larger than the caller's maximum is ever
unpacked, and what unpacks to another size is damaged. The library is loaded by the first payload that needs it: a
broker that only passes entries on does not carry its megabytes.
"""

from __future__ import annotations

import zlib
from enum import IntEnum
from types import ModuleType
from typing import Final

from magnetar.model.errors import MagnetarError
from magnetar.protocol.commands import ValidationError

ZSTD_LEVEL: Final = 3


class CompressionType(IntEnum):
    NONE = 0
    LZ4 = 1
    ZLIB = 2
    ZSTD = 3
    SNAPPY = 4


class DamagedPayloadError(MagnetarError):
    """A message that cannot be unpacked; a consumer acknowledges it with ``reason`` (rule 3.7.8)."""

    def __init__(self, text: str, reason: ValidationError) -> None:
        super().__init__(text)
        self.reason = reason


def _library() -> ModuleType:
    import cramjam

    return cramjam


def compress(kind: CompressionType, data: bytes) -> bytes:
    """Return the payload as it travels; its old size goes into uncompressed_size."""
    if kind is CompressionType.NONE:
        return data
    cramjam = _library()
    match kind:
        case CompressionType.LZ4:
            return bytes(cramjam.lz4.compress_block(data, store_size=False))
        case CompressionType.ZLIB:
            return zlib.compress(data)
        case CompressionType.ZSTD:
            return bytes(cramjam.zstd.compress(data, ZSTD_LEVEL))
        case CompressionType.SNAPPY:
            return bytes(cramjam.snappy.compress_raw(data))


def decompress(kind: CompressionType, data: bytes, uncompressed_size: int, max_size: int) -> bytes:
    """Return the plain payload; DamagedPayloadError if it is damaged, or would be larger than allowed."""
    if kind is CompressionType.NONE:
        return data
    if uncompressed_size > max_size:
        raise DamagedPayloadError(
            f"a payload of {uncompressed_size} bytes is larger than the {max_size} allowed",
            ValidationError.UncompressedSizeCorruption,
        )
    cramjam = _library()
    try:
        plain = _unpack(cramjam, kind, data, uncompressed_size)
    except (cramjam.DecompressionError, zlib.error, EOFError, ValueError) as error:
        raise DamagedPayloadError(f"{kind.name}: {error}", ValidationError.DecompressionError) from None
    if len(plain) != uncompressed_size:
        raise DamagedPayloadError(
            f"{kind.name}: the payload does not have the {uncompressed_size} bytes it claims",
            ValidationError.DecompressionError,
        )
    return plain


def _unpack(cramjam: ModuleType, kind: CompressionType, data: bytes, size: int) -> bytes:
    """Return at most ``size`` bytes, or one more where only that shows that there are more."""
    if kind is CompressionType.ZLIB:
        # Zero would mean without limit; one byte more than promised is enough to see a lie.
        return zlib.decompressobj().decompress(data, size + 1)
    if size == 0:
        # Some writers send nothing at all, others the codec's own empty form (rule 3.7.6).
        return b""
    if kind is CompressionType.SNAPPY and cramjam.snappy.decompress_raw_len(data) != size:
        raise ValueError("the block has another size")
    target = bytearray(size)
    if kind is CompressionType.LZ4:
        written = cramjam.lz4.decompress_block_into(data, target)
    elif kind is CompressionType.SNAPPY:
        written = cramjam.snappy.decompress_raw_into(data, target)
    else:
        written = cramjam.zstd.decompress_into(data, target)
    return bytes(target) if written == size else bytes(target[:written])
