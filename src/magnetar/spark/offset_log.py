"""The files that Spark writes into a query's checkpoint: the query's id, and the end offsets of a micro-batch. Pure.

``metadata`` is JSON with the query's id, written when the query starts for the first time. ``offsets/<batch id>`` is
written before the micro-batch runs. It is lines: ``v1``, the metadata of the micro-batch as JSON, then for each source
its end offset as JSON, or ``-`` while it has none (Spark's class OffsetSeqLog).
"""

from __future__ import annotations

import json
from typing import Final

from magnetar.model.errors import InvalidValueError

VERSION: Final = "v1"
_NO_OFFSET: Final = "-"


def parse_query_id(metadata: str, where: str) -> str:
    """Return the query's id; InvalidValueError, which names ``where``, if this is not Spark's file."""
    try:
        return str(json.loads(metadata)["id"])
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidValueError(f"{where} is no file of Spark's: {error}") from None


def parse_offset_log(log: str, where: str) -> list[str | None]:
    """Return the end offset of each source, in Spark's order; None for a source that has none yet.

    InvalidValueError, which names ``where``, if Spark has written the log in another version.
    """
    # Not splitlines, which ends lines at characters that JSON may hold as they are.
    lines = log.split("\n")
    if not lines or lines[0] != VERSION:
        raise InvalidValueError(
            f"{where} has version {lines[:1]}, and {VERSION} is known; use Spark 4.3, and leave "
            "spark.sql.streaming.offsetLog.formatVersion at 1"
        )
    return [None if line == _NO_OFFSET else line for line in lines[2:] if line.strip()]
