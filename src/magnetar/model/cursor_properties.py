"""Properties of a durable subscription that the broker keeps for itself: ``#`` begins their names, and nobody is shown
them (what compaction has read is one, see :mod:`magnetar.broker.topic.compaction.compacted_view`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

REPLICATED: Final[Mapping[str, str]] = {"#replicated": "true"}
"""Somebody asked for the subscription's state to be replicated: shown, and all there is to it (14.3)."""


def is_replicated(properties: Mapping[str, object]) -> bool:
    """Whether somebody did."""
    return properties.get("#replicated") == "true"
