"""Messages of a partition that is not open yet: they wait in order, and get numbers when its queue takes them."""

from __future__ import annotations

from collections import deque
from typing import Any

from typing_extensions import override

from magnetar.client.machines.message_id import MessageId
from magnetar.client.machines.outgoing.entry_fate import EntryFate
from magnetar.client.machines.outgoing.outgoing_message import OutgoingMessage
from magnetar.client.machines.outgoing.pending_bytes import PendingBytes


class EarlyFate(EntryFate):
    """The fate of one message whose entry is not made yet; a token that hears what becomes of it there."""

    __slots__ = ("_id",)

    def __init__(self) -> None:
        super().__init__(batch=False)
        self.messages = 1
        self._id = MessageId()

    @override
    def message_id(self, index: int) -> MessageId:
        return self._id

    def done(self) -> bool:
        """Whether no caller awaits a receipt: never so."""
        return False

    def set_result(self, result: MessageId, /) -> None:
        """Note where the message is, and tell those who wait."""
        self.known, self._id = True, result
        for _, token in self._take():
            token.set_result(result)

    def set_exception(self, error: Exception, /) -> None:
        """Note why the message is not stored, and tell those who wait."""
        self.failed(error)
        for _, token in self._take():
            token.set_exception(error)
            token.exception()  # it may not be awaited

    def exception(self) -> None:
        """Note that the error was seen."""

    def _take(self) -> list[tuple[int, Any]]:
        tokens, self.tokens = self.tokens, []
        return [one for one in tokens if not one[1].done()]


class EarlyMessages:
    """Those of one partition; the memory they take is that of all pending messages of the client."""

    def __init__(self, memory: PendingBytes) -> None:
        self._memory = memory
        self._waiting: deque[tuple[OutgoingMessage, EarlyFate]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, message: OutgoingMessage, token: Any) -> EarlyFate:
        """Add a message, whose fate ``token`` hears unless it is None."""
        fate = EarlyFate()
        if token is not None:
            fate.tokens.append((0, token))
        self._waiting.append((message, fate))
        self._memory.free -= message.weight
        return fate

    def take(self) -> tuple[OutgoingMessage, EarlyFate] | None:
        """Take the oldest one out; None if there is none."""
        if not self._waiting:
            return None
        message, fate = self._waiting.popleft()
        self._memory.free += message.weight
        return message, fate

    def fail(self, error: Exception) -> int:
        """Fail all of them; returns how many that is."""
        failed = list(self._waiting)
        self._waiting.clear()
        self._memory.release(sum(message.weight for message, _ in failed))
        for _, fate in failed:
            fate.set_exception(error)
        return len(failed)
