"""Checkpoints: the state of every log and cursor as of a segment border, so that start-up scans only what is younger.

A checkpoint is a file ``checkpoint-<n>``: ``magic "MGTRCKP1" | u32 length of head | head (JSON) | for each log: u32
length, its part (:mod:`magnetar.storage.log.log_image`) | u32 crc32c``. It covers all segments up to
``head["segment"]``. It may hold more than they say (logs are captured a few at a time while the broker works):
replaying a record twice changes nothing. Two are kept; a damaged one is set aside and the older one used.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from crc32c import crc32c

from magnetar.storage.backends.journal_backend import JournalBackend, is_bad_medium
from magnetar.storage.log import log_image, records
from magnetar.storage.log.checkpoint_head import MAGIC, head_of
from magnetar.storage.log.log_image import LogImage

log = logging.getLogger(__name__)

_U32: Final = struct.Struct("<I")
KEPT: Final = 2


class Checkpoint(NamedTuple):
    """A whole checkpoint; ``head`` has segment, sequence and the next free ids."""

    head: dict[str, Any]
    logs: list[LogImage]


def encode(head: dict[str, Any], logs: Iterable[bytes]) -> bytes:
    """The content of a checkpoint file."""
    text = records.as_json(head).encode()
    parts = [MAGIC, _U32.pack(len(text)), text]
    for blob in logs:
        parts += (_U32.pack(len(blob)), blob)
    body = b"".join(parts)
    return body + _U32.pack(crc32c(body))


def decode(data: bytes, owner: int | None = None) -> Checkpoint:
    """The inverse of :func:`encode`, judged whole: a start takes what it returns. Raises as :func:`head_of` does."""
    head, at = head_of(data, owner)
    logs = []
    while at < len(data) - _U32.size:
        blob = _sized(data, at)
        logs.append(log_image.decode(blob))
        at += _U32.size + len(blob)
    log_image.require_once((one.about["id"] for one in logs), "logs of one id")
    log_image.require_once((one.about["name"] for one in logs), "logs of one name")
    return Checkpoint(head, logs)


def _sized(data: bytes, at: int) -> bytes:
    """A log's part, before the checksum at the end. Raises RecordError."""
    end = len(data) - _U32.size
    if at + _U32.size <= end:
        (size,) = _U32.unpack_from(data, at)
        if at + _U32.size + size <= end:
            return data[at + _U32.size : at + _U32.size + size]
    raise records.RecordError("a log in the checkpoint is cut off")


def save(backend: JournalBackend, number: int, data: bytes) -> None:
    """Write checkpoint ``number`` and remove those older than the one before it.

    The one before it may have any lower number: one that the disk refused is not there.
    """
    backend.write_checkpoint(number, data)
    for old in backend.checkpoints()[:-KEPT]:
        backend.remove_checkpoint(old)


class Found(NamedTuple):
    """What there is of checkpoints."""

    number: int
    """Of the newest whole one; of the newest if none is whole."""
    checkpoint: Checkpoint | None
    damaged: dict[int, Exception]
    """Those that are newer, and what is wrong with them."""


def find(backend: JournalBackend, owner: int | None = None) -> Found:
    """The newest whole checkpoint. Nothing is changed: a start may be refused for something else.

    Raises PersistenceError if it is of a newer format, OSError if one cannot be read now that may be whole.
    One that the disk does not give counts as damaged: the one before it and the log say the same.
    One that another directory's broker wrote counts as damaged if ``owner``, this one's secret, is known.
    """
    numbers = backend.checkpoints()
    damaged: dict[int, Exception] = {}
    for number in reversed(numbers):
        try:
            return Found(number, decode(backend.read_checkpoint(number), owner), damaged)
        except records.RecordError as error:
            damaged[number] = error
        except OSError as error:
            if not is_bad_medium(error):
                raise
            damaged[number] = error
    return Found(numbers[-1] if numbers else 0, None, damaged)


def set_aside(backend: JournalBackend, damaged: Mapping[int, Exception]) -> None:
    """Rename damaged checkpoints, so that they are kept and not read again."""
    for number, error in damaged.items():
        kept = backend.reject_checkpoint(number)
        log.error("checkpoint-%016x is damaged (%s); kept as %s, the one before it is used", number, error, kept)
