"""Ending many things: one that fails to end does not keep the others from ending."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

log = logging.getLogger(__name__)


def call_all(whose: str, endings: Iterable[Callable[[], object]]) -> None:
    """Call all of ``endings``; what they raise is logged under the name ``whose``."""
    for ending in endings:
        try:
            ending()
        except Exception:
            log.exception("%s: something could not be ended in order; the rest is ended nevertheless", whose)
