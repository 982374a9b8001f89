"""One stored entry, as REST shows it."""

from __future__ import annotations

from typing import NamedTuple


class StoredMessage(NamedTuple):
    """A payload, and headers with the metadata of the entry."""

    payload: bytes
    headers: dict[str, str]
