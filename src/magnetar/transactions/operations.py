"""Operations: how a state of transactions changes, and how it is written. Pure.

An operation is a list of JSON values, the kind first. A snapshot is a version byte and the whole state as JSON; a
change is a JSON list of operations.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, Protocol, TypeAlias

Op: TypeAlias = list[Any]

_VERSION: Final = b"\x01"


class ReplayedState(Protocol):
    """A state that operations change and that can be written down."""

    def apply(self, op: Op) -> None:
        """Change as the operation says; must not fail on one that was once noted."""
        ...

    def encode(self) -> Any:
        """Return everything as JSON values."""
        ...


def write_operations(ops: Sequence[Op]) -> bytes:
    """The bytes of one change."""
    return _dump(ops)


def write_snapshot(state: ReplayedState) -> bytes:
    """The bytes of the whole state."""
    return _VERSION + _dump(state.encode())


def parse_snapshot(snapshot: bytes | None) -> Any:
    """Read what :func:`write_snapshot` wrote; None if there is none."""
    if snapshot is None:
        return None
    if snapshot[:1] != _VERSION:
        raise ValueError(f"a state of transactions in version {snapshot[0]}: written by a newer version of magnetar")
    return json.loads(snapshot[1:])


def replay(state: ReplayedState, changes: Sequence[bytes]) -> None:
    """Apply the changes that were written after a snapshot."""
    for change in changes:
        for op in json.loads(change):
            state.apply(op)


def _dump(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
