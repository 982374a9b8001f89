"""Properties of a durable subscription that the broker keeps for itself: ``#`` begins their names, and no client sees
them (what compaction has read is one, see :mod:`magnetar.broker.topic.compaction.compacted_view`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

REPLICATED: Final[Mapping[str, str]] = {"#replicated": "true"}
"""A client asked for the subscription's state to be replicated, which is shown and does nothing else (rule 14.3)."""


def is_replicated(properties: Mapping[str, object]) -> bool:
    """Whether a client asked for the subscription's state to be replicated."""
    return properties.get("#replicated") == "true"
