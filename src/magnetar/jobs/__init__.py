"""Maintenance of topics as Spark batch jobs: ``magnetar jobs``.

It reads the storage of a running broker and changes nothing there. In reading order:

* ``reader``        the entries and rows of a topic, straight from the broker's directory or over the protocol
* ``verification``  ``audit`` and ``compare``: is every message there, and are two topics the same
* ``compaction``    ``compact``: of a large topic, with the broker's own result
* ``offload``       ``offload``: many sealed ledgers at once
* ``replay``        ``replay``: a backlog or a dead-letter topic published once more
* ``report``        ``report``: retention and cost
* ``results``       tables and files of what a job found
* ``session``       local Spark or spark-submit; errors
* ``broker_flags``  how a command names its broker, and reaches topics
* ``command``       ``magnetar jobs``
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from magnetar.jobs.reader.segment_reader import Entries, Missing
    from magnetar.jobs.reader.unit_reader import entries, frame, read
    from magnetar.jobs.reader.units import Access, Unit, units

__all__ = ["Access", "Entries", "Missing", "Unit", "entries", "frame", "read", "units"]
_EXPORTS: Final = {
    "Access": "magnetar.jobs.reader.units",
    "Entries": "magnetar.jobs.reader.segment_reader",
    "Missing": "magnetar.jobs.reader.segment_reader",
    "Unit": "magnetar.jobs.reader.units",
    "entries": "magnetar.jobs.reader.unit_reader",
    "frame": "magnetar.jobs.reader.unit_reader",
    "read": "magnetar.jobs.reader.unit_reader",
    "units": "magnetar.jobs.reader.units",
}
"""Where programs' names come from; they are imported when they are used, so that a command's help needs no Arrow."""


def __getattr__(name: str) -> Any:
    """Import a public name when it is used."""
    if name in _EXPORTS:
        return getattr(importlib.import_module(_EXPORTS[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
