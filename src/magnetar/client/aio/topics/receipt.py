"""What a sender waits with for the id of its message.

A thousand receipts of a batch share one `EntryFate`, and cost an object each. One that is awaited, or gets a
callback on, gets a future of asyncio's. It passes for one: `asyncio.wait`, `gather`, `shield` and `wait_for` take it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextvars import Context
from typing import Any, Final, Protocol

from magnetar.client.errors import ClientTimeoutError, ConnectionLostError, MemoryFullError, QueueFullError
from magnetar.client.machines.message_id import MessageId
from magnetar.client.machines.outgoing.entry_fate import EntryFate


class FateToken(Protocol):
    """What hears the fate of one message: a future, or something cheaper with a future's names."""

    def done(self) -> bool: ...
    def set_result(self, result: MessageId, /) -> None: ...
    def set_exception(self, error: Exception, /) -> None: ...
    def exception(self) -> object: ...


class Receipt:
    """The id of one message, once it is stored; or why it is not."""

    __slots__ = ("_fate", "_future", "_index", "_loop")

    _asyncio_future_blocking: Final = False
    """By this asyncio recognizes futures."""

    def __init__(self, fate: EntryFate, index: int, loop: asyncio.AbstractEventLoop) -> None:
        self._fate = fate
        self._index = index
        self._loop = loop
        self._future: asyncio.Future[MessageId] | None = None

    def __await__(self) -> Generator[Any, None, MessageId]:
        if self._future is None and self._fate.known:
            return self.result()
        return (yield from self.as_future().__await__())

    __iter__ = __await__

    def as_future(self) -> asyncio.Future[MessageId]:
        """Return a future of asyncio's with the same result, always the same one."""
        future = self._future
        if future is None:
            future = self._future = self._loop.create_future()
            fate = self._fate
            if not fate.known:
                fate.tokens.append((self._index, future))
            elif fate.error is None:
                future.set_result(fate.message_id(self._index))
            else:
                future.set_exception(fate.error)
                future.exception()  # it may not be asked for
        return future

    def done(self) -> bool:
        """Whether the fate of the message is known, or the sender has given up."""
        return self._fate.known if self._future is None else self._future.done()

    def cancelled(self) -> bool:
        """Whether the sender has given up; the message is on its way all the same."""
        return self._future is not None and self._future.cancelled()

    def cancel(self, msg: Any | None = None) -> bool:
        """Stop waiting; the message is on its way all the same. Returns whether it waited."""
        return not self.done() and self.as_future().cancel(msg)

    def result(self) -> MessageId:
        """Return the id of the message. Raises why it was not stored, InvalidStateError while that is not known."""
        if self._future is not None:
            return self._future.result()
        fate = self._fate
        if not fate.known:
            raise asyncio.InvalidStateError("the message has no receipt yet; await it")
        if fate.error is not None:
            raise fate.error
        return fate.message_id(self._index)

    def exception(self) -> BaseException | None:
        """Return why the message was not stored, None if it was. Raises InvalidStateError while that is not known."""
        if self._future is not None:
            return self._future.exception()
        if not self._fate.known:
            raise asyncio.InvalidStateError("the message has no receipt yet; await it")
        return self._fate.error

    def add_done_callback(self, call: Callable[[Any], object], *, context: Context | None = None) -> None:
        """Have ``call`` called with a future of the same result, from the loop, as soon as it has one."""
        self.as_future().add_done_callback(call, context=context)

    def follow(self, token: Any) -> None:
        """Have a token hear the fate of the message, no matter who else waits for it."""
        fate = self._fate
        if not fate.known:
            fate.tokens.append((self._index, token))
        elif fate.error is None:
            token.set_result(fate.message_id(self._index))
        else:
            token.set_exception(fate.error)

    def remove_done_callback(self, call: Callable[[Any], object]) -> int:
        """Take a callback back; returns how often it was there."""
        return 0 if self._future is None else self._future.remove_done_callback(call)

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """Return the loop it belongs to."""
        return self._loop

    def __repr__(self) -> str:
        if not self.done():
            return "<Receipt pending>"
        if self.cancelled():
            return "<Receipt cancelled>"
        error = self.exception()
        return f"<Receipt {self.result()}>" if error is None else f"<Receipt failed: {error}>"


def tell_stored(fate: EntryFate) -> None:
    """Tell everybody who waits where the messages of an entry are."""
    for index, token in fate.tokens:
        if not token.done():
            token.set_result(fate.message_id(index))
    fate.tokens.clear()


def tell_failed(fate: EntryFate, error: Exception) -> None:
    """Note why the messages of an entry are not stored, and tell everybody who waits."""
    fate.failed(error)
    for _, token in fate.tokens:
        if not token.done():
            token.set_exception(error)
            token.exception()  # it may not be awaited
    fate.tokens.clear()


def lost_in_transaction(topic: str, error: Exception) -> ConnectionLostError:
    """Return what becomes of a message in a transaction that was written on a connection which is lost."""
    return ConnectionLostError(
        f"{topic}: the connection was lost before a message in a transaction had its receipt; it may be stored "
        f"({error}); abort the transaction, and begin it anew"
    )


def no_room(topic: str, producer: str, messages: int) -> QueueFullError:
    """Return what becomes of a message for which its queue has no room."""
    return QueueFullError(
        f"{topic}: {messages} messages of producer {producer} wait for their receipts; "
        "await some of them, raise max_pending_messages or turn block_if_queue_full on"
    )


def no_memory(topic: str, limit: int) -> MemoryFullError:
    """Return what becomes of a message for which its client has no memory."""
    return MemoryFullError(topic, limit)


def no_receipt(topic: str, producer: str, seconds: float, trouble: Exception | None) -> ClientTimeoutError:
    """Return what becomes of a message whose receipt does not come in time; ``trouble``: why it is not connected."""
    why = "is the broker away, its disk full or its backlog quota reached?" if trouble is None else (
        f"it is not connected: {trouble}"
    )  # fmt: skip
    return ClientTimeoutError(f"{topic}: a message of producer {producer} got no receipt in {seconds:g} s; {why}")
