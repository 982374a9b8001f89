"""Checkpoints: the state of every log and cursor as of a segment border, so that start-up scans only what is younger.

A checkpoint is a file ``checkpoint-<n>``: ``magic "MGTRCKP1" | u32 length of head | head (JSON) | for each log: u32
length, u32 length of its JSON, JSON, cursors (u32 count, each u32 length + CURSOR body), states of features (u32 count,
each u32 length + image) | u32 crc32c``. It covers all segments up to ``head["segment"]``. It may hold more than they
say (logs are captured a few at a time while the broker works): replaying a record twice changes nothing. Two are kept;
a damaged one is set aside and the older one used.
"""

from __future__ import annotations

import json
import logging
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from crc32c import crc32c

from magnetar.storage.backends.journal_backend import JournalBackend
from magnetar.storage.log import cursor_records, records
from magnetar.storage.log.checkpoint_head import MAGIC, head_of, is_number, readable

log = logging.getLogger(__name__)

_U32: Final = struct.Struct("<I")
_FEATURE_STATE: Final = struct.Struct("<HHI")
_LEDGER_VALUES: Final = 8
"""How many values a ledger has at least."""
KEPT: Final = 2


class CursorImage(NamedTuple):
    """A cursor in a checkpoint."""

    name: str
    properties: dict[str, Any]
    state: cursor_records.CursorState


class FeatureStateImage(NamedTuple):
    """The state of one feature, in a checkpoint."""

    name: str
    snapshot: bytes | None
    changes: Sequence[bytes]
    """After the snapshot, in order."""


class LogImage(NamedTuple):
    """A log in a checkpoint: its JSON part, its cursors and what its features keep."""

    about: dict[str, Any]
    cursors: list[CursorImage]
    feature_states: list[FeatureStateImage]


class Checkpoint(NamedTuple):
    """A whole checkpoint; ``head`` has segment, sequence and the next free ids."""

    head: dict[str, Any]
    logs: list[LogImage]


def log_blob(about: dict[str, Any], cursors: Iterable[bytes], feature_states: Iterable[FeatureStateImage]) -> bytes:
    """One log's part of a checkpoint."""
    text = json.dumps(about, separators=(",", ":")).encode()
    parts = [_U32.pack(len(text)), text]
    for bodies in (list(cursors), [_feature_state_bytes(feature_state) for feature_state in feature_states]):
        parts.append(_U32.pack(len(bodies)))
        for body in bodies:
            parts += (_U32.pack(len(body)), body)
    return b"".join(parts)


def _feature_state_bytes(feature_state: FeatureStateImage) -> bytes:
    """A snapshot is the first of the parts; without one the first part is missing and the flag 0."""
    name = feature_state.name.encode()
    datas = [*([] if feature_state.snapshot is None else [feature_state.snapshot]), *feature_state.changes]
    parts = [_FEATURE_STATE.pack(len(name), feature_state.snapshot is not None, len(datas)), name]
    for data in datas:
        parts += (_U32.pack(len(data)), data)
    return b"".join(parts)


def _parse_feature_state(body: bytes) -> FeatureStateImage:
    size, whole, count = _FEATURE_STATE.unpack_from(body)
    at = _FEATURE_STATE.size + size
    name = body[_FEATURE_STATE.size : at].decode()
    datas = []
    for _ in range(count):
        (size,) = _U32.unpack_from(body, at)
        datas.append(body[at + 4 : at + 4 + size])
        at += 4 + size
    return FeatureStateImage(name, datas[0], datas[1:]) if whole else FeatureStateImage(name, None, datas)


def encode(head: dict[str, Any], logs: Iterable[bytes]) -> bytes:
    """The content of a checkpoint file."""
    text = json.dumps(head, separators=(",", ":")).encode()
    parts = [MAGIC, _U32.pack(len(text)), text]
    for blob in logs:
        parts += (_U32.pack(len(blob)), blob)
    body = b"".join(parts)
    return body + _U32.pack(crc32c(body))


def decode(data: bytes, owner: int | None = None) -> Checkpoint:
    """The inverse of :func:`encode`. Raises as :func:`head_of` does."""
    head, at = head_of(data, owner)
    logs = []
    while at < len(data) - 4:
        blob = _sized(data, at)
        logs.append(readable(_decode_log, blob, "a log in the checkpoint"))
        at += 4 + len(blob)
    return Checkpoint(head, logs)


def _sized(data: bytes, at: int) -> bytes:
    """Return what follows its length. Raises RecordError."""
    if at + 4 <= len(data):
        (size,) = _U32.unpack_from(data, at)
        if at + 4 + size <= len(data):
            return data[at + 4 : at + 4 + size]
    raise records.RecordError("a log in the checkpoint is cut off")


def _require_log(about: Any) -> None:
    """Raises ValueError, TypeError, LookupError if that is no log's JSON."""
    numbers = [about["id"], about["end"], about["index"], about["annexes"], *about.get("hidden", (0, 0))]
    if not (
        isinstance(about["name"], str)
        and isinstance(about["properties"], dict)
        and all(type(number) is int for number in numbers)
        and all(len(span) == 5 and all(map(is_number, span)) for span in about["spans"])
        and all(isinstance(ledger, list) and len(ledger) >= _LEDGER_VALUES for ledger in about["ledgers"])
    ):
        raise ValueError("it does not say what a log has to say")


def _decode_log(blob: bytes) -> LogImage:
    (size,) = _U32.unpack_from(blob, 0)
    about = json.loads(blob[4 : 4 + size])
    _require_log(about)
    at = 4 + size
    (count,) = _U32.unpack_from(blob, at)
    at += 4
    cursors = []
    for _ in range(count):
        (size,) = _U32.unpack_from(blob, at)
        name, properties, state, _end = cursor_records.parse_cursor_record(blob[at + 4 : at + 4 + size])
        cursors.append(CursorImage(name, properties, state))
        at += 4 + size
    feature_states = []
    (count,) = _U32.unpack_from(blob, at)
    at += 4
    for _ in range(count):
        (size,) = _U32.unpack_from(blob, at)
        feature_states.append(_parse_feature_state(blob[at + 4 : at + 4 + size]))
        at += 4 + size
    return LogImage(about, cursors, feature_states)


def save(backend: JournalBackend, number: int, data: bytes) -> None:
    """Write checkpoint ``number`` and remove those older than the one before it."""
    backend.write_checkpoint(number, data)
    for old in backend.checkpoints():
        if old <= number - KEPT:
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

    Raises PersistenceError if it is of a newer format.
    One that another directory's broker wrote counts as damaged if ``owner``, this one's secret, is known.
    """
    numbers = backend.checkpoints()
    damaged: dict[int, Exception] = {}
    for number in reversed(numbers):
        try:
            return Found(number, decode(backend.read_checkpoint(number), owner), damaged)
        except records.RecordError as error:
            damaged[number] = error
    return Found(numbers[-1] if numbers else 0, None, damaged)


def set_aside(backend: JournalBackend, damaged: Mapping[int, Exception]) -> None:
    """Rename damaged checkpoints, so that they are kept and not read again."""
    for number, error in damaged.items():
        kept = backend.reject_checkpoint(number)
        log.error("checkpoint-%016x is damaged (%s); kept as %s, the one before it is used", number, error, kept)
