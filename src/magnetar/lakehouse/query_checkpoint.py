"""What a sink can learn from its query's checkpoint: the query's id, and how far a micro-batch reads its topics.

Spark tells a Python sink neither. But it writes ``metadata`` when a query is first started and ``offsets/<batch id>``
before the micro-batch runs, so both are there when the sink commits. An offset log is lines: ``v1``, the batch's
metadata, then the end offset of each source, as JSON or ``-``. (Spark's class OffsetSeqLog.)
"""

from __future__ import annotations

import json
from typing import Final

from magnetar.lakehouse.files.file_store import FileStore
from magnetar.lakehouse.model.history import Positions
from magnetar.model.errors import MagnetarError
from magnetar.spark.offset_json import from_json

_ABSENT: Final = "-"


class QueryCheckpoint:
    """The checkpoint directory of one query, local or in an object store."""

    def __init__(self, path: str, storage: dict[str, str]) -> None:
        self._store = FileStore(path, storage)

    def query_id(self) -> str | None:
        """Return the query's id; None before it has started for the first time."""
        try:
            return str(json.loads(self._store.read("metadata"))["id"])
        except FileNotFoundError:
            return None

    def positions(self, batch: int) -> Positions | None:
        """Return where a micro-batch ends, over all its Pulsar topics; None if it is not there or reads none."""
        try:
            return positions_of(self._store.read(f"offsets/{batch}").decode())
        except FileNotFoundError:
            return None


def positions_of(log: str) -> Positions | None:
    """Of the text of an offset log. Sources that are not Pulsar's say nothing."""
    found: Positions = {}
    for line in log.split("\n")[1:]:
        if line.strip() in ("", _ABSENT):
            continue
        try:
            offset = json.loads(line)
            places = from_json(offset)
        except (ValueError, AttributeError, MagnetarError):
            continue
        for topic, place in places.items():
            # Read twice by one query: everything before the earlier place is in the table.
            text = str(place)
            if topic in found:
                text = min(found[topic], text, key=lambda one: tuple(map(int, one.split(":"))))
            found[topic] = text
    return found or None
