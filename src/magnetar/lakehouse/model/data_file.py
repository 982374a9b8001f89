"""A data file as a task reports it to the driver."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from magnetar.lakehouse.model.partition import Values


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data file that a task has written; plain data, pickled."""

    path: str
    """Relative to the table."""
    size: int
    """Bytes."""
    rows: int
    partition: Values = ()
    statistics: dict[str, Any] = field(default_factory=dict)
    """Statistics in Delta's form: numRecords, minValues, maxValues, nullCount (`statistics`)."""
