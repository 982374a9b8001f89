"""Ending many things: one that fails to end keeps none of the others."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

log = logging.getLogger(__name__)


def end_all(whose: str, endings: Iterable[Callable[[], object]]) -> None:
    """Call all of them; what they raise is logged. ``whose``: for the log."""
    for ending in endings:
        try:
            ending()
        except Exception:
            log.exception("%s: something could not be ended in order; the rest is ended nevertheless", whose)
