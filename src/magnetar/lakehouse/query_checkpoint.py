"""What a sink can learn from its query's checkpoint: the query's id, and how far a micro-batch reads its topics.

Spark gives a Python sink neither. But it writes ``metadata`` when a query is first started and ``offsets/<batch id>``
before the micro-batch runs (`spark.offset_log`), so both are there when the sink commits.
"""

from __future__ import annotations

from magnetar.lakehouse.files.file_store import FileStore
from magnetar.lakehouse.model.history import Positions
from magnetar.spark.offset_json import from_json, own_offset
from magnetar.spark.offset_log import parse_offset_log, parse_query_id


class QueryCheckpoint:
    """The checkpoint directory of one query, local or in an object store."""

    def __init__(self, path: str, storage: dict[str, str]) -> None:
        self._store = FileStore(path, storage)

    def query_id(self) -> str | None:
        """Return the query's id; None before it has started for the first time."""
        try:
            return parse_query_id(self._store.read("metadata").decode(), "metadata")
        except FileNotFoundError:
            return None

    def positions(self, batch: int) -> Positions | None:
        """Return where a micro-batch ends, over all its Pulsar topics; None if it is not there or reads none."""
        try:
            return positions_of(self._store.read(f"offsets/{batch}").decode(), f"offsets/{batch}")
        except FileNotFoundError:
            return None


def positions_of(log: str, where: str) -> Positions | None:
    """Return the positions in the text of an offset log; sources that are not Pulsar's have none.

    InvalidValueError, which names ``where``, for a log or an offset of another version.
    """
    found: Positions = {}
    for line in parse_offset_log(log, where):
        offset = None if line is None else own_offset(line)
        if offset is None:
            continue
        for topic, position in from_json(offset).items():
            # Read twice by one query: everything before the earlier position is in the table.
            text = str(position)
            if topic in found:
                text = min(found[topic], text, key=lambda one: tuple(map(int, one.split(":"))))
            found[topic] = text
    return found or None
