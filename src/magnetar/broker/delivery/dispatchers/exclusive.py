"""Exclusive: one consumer gets all entries in order.

An Exclusive consumer may declare hash ranges; the entries of other keys are then skipped, not acknowledged (rule
5.3.2).
"""

from __future__ import annotations

from typing_extensions import override

from magnetar.broker.delivery.consumer_state import ConsumerState
from magnetar.broker.delivery.dispatchers.single_active_consumer import SingleActiveConsumer
from magnetar.broker.delivery.instructions import Do, Instruction
from magnetar.broker.delivery.sticky_keys.sticky_ranges import check_count, joined
from magnetar.model.errors import ConsumerBusyError
from magnetar.model.hashing import range_slot


class Exclusive(SingleActiveConsumer):
    """Admits one consumer and refuses others."""

    @override
    def add(self, consumer: ConsumerState) -> list[Instruction]:
        if self.consumers:
            raise ConsumerBusyError("Exclusive consumer is already connected")
        check_count(consumer.ranges or ())
        self._ranges = joined(consumer.ranges or ())
        self.consumers.append(consumer)
        self.active = consumer
        self.key_slot = range_slot if consumer.ranges else None
        return [Do.REWIND]

    @override
    def remove(self, consumer: ConsumerState) -> list[Instruction]:
        self.consumers.remove(consumer)
        self.active = None
        self.key_slot = None
        return []
