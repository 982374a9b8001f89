"""Failover: one active consumer, chosen by rank, and stand-bys.

The members alone determine which one is active, so every join and leave asks the :class:`FailoverOrder` again.

A change takes effect after a delay (rule 5.4.6): the old consumer gets nothing more at once, and when the delay is over
the cursor rewinds, all consumers are notified, and the new one is served. Another change meanwhile does not restart the
delay.
"""

from __future__ import annotations

from typing_extensions import override

from magnetar.broker.delivery.consumer_state import ConsumerState
from magnetar.broker.delivery.dispatchers.failover_order import FailoverOrder
from magnetar.broker.delivery.dispatchers.single_active_consumer import SingleActiveConsumer
from magnetar.broker.delivery.instructions import ActiveChange, Do, Instruction


class Failover(SingleActiveConsumer):
    """Serves the active consumer; with ``delayed`` False every change takes effect at once (activation delay 0)."""

    def __init__(
        self,
        topic: str,
        partition: int,
        *,
        ring_for_partitions: bool = False,
        delayed: bool = True,
        read_max: int = 100,
    ) -> None:
        super().__init__(read_max)
        self._ranking = FailoverOrder(topic, partition, ring_for_partitions=ring_for_partitions)
        self._delayed = delayed

    @override
    def add(self, consumer: ConsumerState) -> list[Instruction]:
        self._ranking.add(consumer)
        self.consumers.append(consumer)
        changed = self._choose()
        if changed is not None:
            return changed
        return [ActiveChange(consumer, False)]

    @override
    def remove(self, consumer: ConsumerState) -> list[Instruction]:
        self.consumers.remove(consumer)
        self._ranking.remove(consumer)
        if not self.consumers:
            self.active = None
            was_waiting, self.waiting = self.waiting, False
            return [Do.DISARM] if was_waiting else []
        return self._choose() or []

    def activate(self) -> list[Instruction]:
        """The delay is over: all unacknowledged entries go to the active consumer, and all consumers are notified."""
        self.waiting = False
        if self.active is None:
            return []
        return [Do.REWIND, *(ActiveChange(c, c is self.active) for c in self.consumers)]

    def _choose(self) -> list[Instruction] | None:
        """Choose again; returns None when the active consumer stays."""
        chosen = self._ranking.first()
        if chosen is self.active:
            return None
        self.active = chosen
        if not self._delayed:
            return self.activate()
        if self.waiting:
            return []
        self.waiting = True
        return [Do.ARM]
