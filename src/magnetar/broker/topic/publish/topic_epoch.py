"""Which generation of exclusive producers a topic is in; outlives restarts (rule 3.2.5)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, Protocol

from magnetar.storage.ledgers.managed_ledger import ManagedLedger

EPOCH_PROPERTY: Final = "pulsar.topic.epoch"
"""A property of the log, a number as text; Apache Pulsar shows it among a topic's properties under this name."""
EPOCH_MAX: Final = 1 << 62
"""What is kept beyond is no epoch: the wire has 64 bits, and those who follow need numbers."""
EPOCH_NAMED_MAX: Final = 1 << 61
"""The highest epoch that a client may name, unless its topic has come to more: no topic counts from there to
``EPOCH_MAX``."""
_KEPT: Final = re.compile(r"[0-9]{1,19}", re.ASCII)


class TopicEpoch(Protocol):
    """The epoch of a topic's exclusive producer, wherever it is kept."""

    @property
    def current(self) -> int | None:
        """None as long as there was no exclusive producer."""
        ...

    def move(self, epoch: int, done: Callable[[], None]) -> None:
        """Set it to ``epoch``; ``done`` is called when that outlives a crash."""
        ...


class LogEpoch:
    """An epoch that is kept in the properties of the topic's log."""

    def __init__(self, log: ManagedLedger) -> None:
        self._log = log

    @property
    def current(self) -> int | None:
        """See :class:`TopicEpoch`.

        Older versions let users set the property; what they wrote there, and is no epoch, means none.
        """
        kept = self._log.properties.get(EPOCH_PROPERTY)
        found = int(kept) if isinstance(kept, str) and _KEPT.fullmatch(kept) else -1
        return found if 0 <= found <= EPOCH_MAX else None

    def move(self, epoch: int, done: Callable[[], None]) -> None:
        """See :class:`TopicEpoch`."""
        self._log.properties = {**self._log.properties, EPOCH_PROPERTY: str(epoch)}
        self._log.write_birth(done)


class MemoryEpoch:
    """An epoch that is kept in memory, for a topic that keeps nothing."""

    def __init__(self) -> None:
        self.current: int | None = None

    def move(self, epoch: int, done: Callable[[], None]) -> None:
        """See :class:`TopicEpoch`."""
        self.current = epoch
        done()
