"""Carries out what a dispatcher decides about its active consumer: ACTIVE_CONSUMER_CHANGE, rewind, activation delay.

A Failover subscription waits a moment before a new active consumer takes over (rule 5.4.6): the only timer of a
subscription besides the one for reads that failed.
"""

from __future__ import annotations

import asyncio

from magnetar.broker.delivery.dispatchers.failover import Failover
from magnetar.broker.delivery.instructions import ActiveChange, Do, Instruction
from magnetar.broker.topic.dispatch.dispatch_settings import DispatchSettings
from magnetar.broker.topic.dispatch.pump import Pump


class ActiveConsumerSwitch:
    """One subscription's; on the loop of its topic."""

    __slots__ = ("_pump", "_settings", "_timer")

    def __init__(self, pump: Pump, settings: DispatchSettings) -> None:
        self._pump = pump
        self._settings = settings
        self._timer: asyncio.TimerHandle | None = None

    def perform(self, instructions: list[Instruction]) -> None:
        """Do what the dispatcher asked for, in its order."""
        for instruction in instructions:
            if isinstance(instruction, ActiveChange):
                self._pump.consumers[instruction.consumer].connection.active_change(instruction.active)
            elif instruction is Do.REWIND:
                self._pump.rewind()
            elif instruction is Do.ARM:
                delay_s = self._settings.active_consumer_failover_delay_ms / 1000
                self._timer = asyncio.get_running_loop().call_later(delay_s, self._activate)
            else:
                self.disarm()

    def _activate(self) -> None:
        self._timer = None
        dispatcher = self._pump.dispatcher
        if isinstance(dispatcher, Failover):
            self.perform(dispatcher.activate())
            self._pump.turn()

    def disarm(self) -> None:
        """Cancel a takeover that is waited for."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
