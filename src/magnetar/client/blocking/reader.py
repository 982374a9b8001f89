"""What threads read with: a reader over its asyncio twin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Generic

from magnetar.client.aio.consumers.reader import Reader as AioReader
from magnetar.client.blocking.hand_over import HandOver
from magnetar.client.blocking.listener_pool import Listener, ListenerPool, ListenerTurns
from magnetar.client.blocking.loop_thread import LoopThread
from magnetar.client.errors import ArgumentError
from magnetar.client.machines.message import Message, T
from magnetar.client.machines.message_id import MessageId

_SAY_EVERY: Final = 500
"""After so many messages the broker hears how far it is, for its statistics (rule 6.9.1)."""


class Reader(Generic[T]):
    """A reader; make it with `Client.create_reader`, and use it as a context manager."""

    def __init__(
        self, thread: LoopThread, twin: AioReader[T], listener: Listener | None = None, pool: ListenerPool | None = None
    ) -> None:
        """``listener`` is called with every message, on a thread of ``pool``."""
        self.twin = twin
        """Its asyncio twin, which lives on the loop thread."""
        self._thread = thread
        self._hand_over = HandOver(thread, twin.consumer)
        self._last: dict[str, Message[T]] = {}
        self._unsaid = 0
        thread.closes_with(self, twin)
        self._listening: ListenerTurns | None = None
        if listener is not None and pool is not None:
            self._listening = ListenerTurns(pool, self._hand_over, self, listener)

    def __enter__(self) -> Reader[T]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[Message[T]]:
        while True:
            yield self.read_next()

    def topic(self) -> str:
        """Return the topic."""
        return self.twin.topic()

    def has_reached_end_of_topic(self) -> bool:
        """Whether the topic was terminated and everything was read."""
        self._thread.check_process()
        return self.twin.has_reached_end_of_topic()

    def is_connected(self) -> bool:
        """Whether all its partitions are open at a broker at the moment."""
        self._thread.check_process()
        return self.twin.is_connected()

    def read_next(self, timeout_millis: int | None = None) -> Message[T]:
        """Return the next message. Raises as `Consumer.receive`."""
        if self._listening is not None:
            raise ArgumentError(
                "the reader_listener of this reader gets its messages; read_next and it exclude each other"
            )
        if self._unsaid >= _SAY_EVERY:
            self._thread.post(self._say)
        message = self._hand_over.take(timeout_millis)
        # From here on nothing is called, and so nothing interrupted that would lose the message.
        self._last[message.envelope.topic] = message
        self._unsaid += 1
        return message

    def _say(self) -> None:
        """Let the reader on the loop know what was read."""
        unsaid, self._unsaid = self._unsaid, 0
        if unsaid:
            self.twin.note(self._last.copy().values(), unsaid)

    def get_last_message_id(self) -> MessageId:
        """Return the id of the last message; of a partitioned topic use `get_last_message_ids`."""
        return self._thread.run(self.twin.get_last_message_id())

    def get_last_message_ids(self) -> list[MessageId]:
        """Return the id of the last message of each internal topic."""
        return self._thread.run(self.twin.get_last_message_ids())

    def has_message_available(self) -> bool:
        """Whether a message is stored that was not read yet (rule 6.9.3)."""
        return self._thread.run(self._available())

    async def _available(self) -> bool:
        self._say()
        return await self.twin.has_message_available()

    def seek(self, messageid: MessageId | int) -> None:
        """Go after a message, with ``start_message_id_inclusive`` to it, or to a publish time in milliseconds."""
        self._thread.run(self._seek(messageid))

    async def _seek(self, messageid: MessageId | int) -> None:
        await self.twin.seek(messageid)
        self._hand_over.moved()
        self._last.clear()
        self._unsaid = 0

    def close(self) -> None:
        """Close; the broker forgets it. Closing twice is no error."""
        self._thread.may_wait()
        try:
            self._thread.end(self.twin.close)
        finally:
            self._hand_over.forget()
            if self._listening is not None:
                self._listening.end()
