"""Which generation of exclusive producers a topic is in; outlives restarts (rule 3.2.5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from magnetar.storage.ledgers.managed_ledger import ManagedLedger

EPOCH_PROPERTY: Final = "pulsar.topic.epoch"
"""A property of the log, a number as text; Apache Pulsar shows it among a topic's properties under this name."""


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
        """See :class:`TopicEpoch`."""
        kept = self._log.properties.get(EPOCH_PROPERTY)
        return None if kept is None else int(kept)

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
