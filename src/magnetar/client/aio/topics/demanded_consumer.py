"""One consumer on one topic or partition without a queue: entries come when they are permitted one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from typing_extensions import override

from magnetar.client.aio.topics.topic_consumer import TopicConsumer
from magnetar.client.machines.message import Message
from magnetar.client.machines.message_id import MessageId
from magnetar.protocol import commands as c


class DemandedConsumer(TopicConsumer):
    """One partition's consumer that says what comes and goes, and hands back what there is no room for."""

    on_change: Callable[[DemandedConsumer], None] | None = None
    """Hears it, once it is set."""

    def _changed(self) -> None:
        if self.on_change is not None:
            self.on_change(self)

    @property
    def receives(self) -> bool:
        """Whether messages may come at the moment."""
        return self.connected and not self._seeking and self.failure is None and not self._closing

    def permit(self) -> None:
        """Have the broker send one entry."""
        self.consumption.permits.ask_one()
        self.settle_soon()

    def hand_back(self) -> bool:
        """Hand everything back of which nothing was taken; returns whether there was something."""
        self._count_held()
        found = self.consumption.hand_back()
        if found:
            self.settle_soon()
        return found

    def return_all(self) -> None:
        """Have everything come again that was put back."""
        if self._ordered:
            self.redeliver_all()
        else:
            self.hand_back()
        self.settle_soon()

    @override
    def on_message(self, message: c.CommandMessage) -> None:
        super().on_message(message)
        if self._hold is not None:
            self._changed()  # it may wait there

    @override
    def _take_in(self, message: c.CommandMessage) -> None:
        super()._take_in(message)
        self._changed()

    @override
    def on_lost(self, error: Exception) -> None:
        super().on_lost(error)
        self._changed()

    @override
    def _let_go(self) -> None:
        super()._let_go()
        self._changed()

    @override
    def used_up(self, last: Message[Any], *, back: bool = False) -> None:
        super().used_up(last, back=back)
        self._changed()

    @override
    def _settle(self) -> None:
        self._changed()
        super()._settle()

    @override
    async def seek(self, command: c.CommandSeek, start: MessageId | None) -> None:
        try:
            await super().seek(command, start)
        finally:
            self.settle_soon()
