"""What a task tells the driver of a file it has written; plain data that travels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from magnetar.lakehouse.model.partition import Values


@dataclass(frozen=True, slots=True)
class DataFile:
    path: str
    """Relative to the table."""
    size: int
    """Bytes."""
    rows: int
    partition: Values = ()
    statistics: dict[str, Any] = field(default_factory=dict)
    """As Delta wants them: numRecords, minValues, maxValues, nullCount (`statistics`)."""
