"""What threads have sent and the loop has not taken yet, and how much of it all has met no fate.

A message that is added costs the thread an entry in a queue; the loop wakes up once for all that were added until it
does. Threads and the loop count for themselves, each upwards, so that no lock is needed for a message.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from magnetar.client.aio.producers.producer import Producer as AioProducer
from magnetar.client.blocking.loop_thread import LoopThread
from magnetar.client.errors import AlreadyClosedError, QueueFullError, result_of
from magnetar.client.machines.message_id import MessageId
from magnetar.client.machines.outgoing.outgoing_message import OutgoingMessage
from magnetar.client.refusals import Result

Callback = Callable[[Result, MessageId], object]
"""What hears the fate of a message; the id is (-1,-1,-1,-1) if there is none."""

_LOG: Final = logging.getLogger(__name__)
_NOWHERE: Final = MessageId()


class PostedMessage:
    """One message that is on its way, as the loop sees it: it completes this as it would a future."""

    __slots__ = ("_callback", "_queue")

    def __init__(self, queue: SendQueue, callback: Callback | None) -> None:
        self._queue = queue
        self._callback = callback

    def done(self) -> bool:
        """Whether nobody waits any more: never so."""
        return False

    def set_result(self, result: MessageId, /) -> None:
        """Tell the application where the message is."""
        self._queue.count_fate()
        callback = self._callback
        if callback is not None:
            try:
                callback(Result.Ok, result)
            except Exception:
                _LOG.exception("a callback of send_async failed")

    def set_exception(self, error: Exception, /) -> None:
        """Tell the application why the message is not stored, as far as is known."""
        self._queue.count_fate()
        if self._callback is None:
            _LOG.warning("a message was not stored, and send_async was given no callback: %s", error)
            return
        try:
            self._callback(result_of(error), _NOWHERE)
        except Exception:
            _LOG.exception("a callback of send_async failed")

    def exception(self) -> None:
        """Note that the error was seen."""


class AwaitedMessage:
    """One message that a thread waits for."""

    __slots__ = ("_error", "_fate", "_id", "_queue")

    def __init__(self, queue: SendQueue) -> None:
        self._queue = queue
        self._fate = threading.Lock()
        self._fate.acquire()
        self._id: MessageId | None = None
        self._error: Exception | None = None

    def done(self) -> bool:
        """Whether nobody waits any more: never so."""
        return False

    def set_result(self, result: MessageId, /) -> None:
        """Let the thread go on with the message's id."""
        self._queue.count_fate()
        self._id = result
        self._fate.release()

    def set_exception(self, error: Exception, /) -> None:
        """Let the thread go on with an error."""
        self._queue.count_fate()
        self._error = error
        self._fate.release()

    def exception(self) -> None:
        """Note that the error was seen."""

    def wait(self) -> MessageId:
        """Return the message's id once it is stored. Raises why it is not."""
        self._fate.acquire()
        if self._error is not None:
            raise self._error
        assert self._id is not None
        return self._id


class SendQueue:
    """The messages of one producer between its threads and its loop."""

    def __init__(self, thread: LoopThread, producer: AioProducer[Any]) -> None:
        self._thread = thread
        self._producer = producer
        options = producer.options
        self._blocks = options.block_if_queue_full
        most = options.limits.pending_messages or sys.maxsize
        # Without waiting each partition says itself that it is full; with it none of them may ever be.
        self._most = most if self._blocks else most * producer.partitions
        self._waiting: deque[tuple[bytes | OutgoingMessage, PostedMessage | AwaitedMessage]] = deque()
        self._posted = False
        self._hurried = False
        """Whether a thread waits for one of the messages that wait."""
        self._sent = 0
        """Messages added; only threads count it."""
        self._fated = 0
        """Messages whose fate is known; only the loop counts it."""
        self._room: deque[threading.Lock] = deque()
        """Locks that threads wait at for room, each one its own."""
        thread.gives_up_with(self)

    def add(self, message: bytes | OutgoingMessage, token: PostedMessage | AwaitedMessage) -> None:
        """Add a message, waiting for room if the producer was made so. Raises QueueFullError, AlreadyClosedError."""
        thread = self._thread
        if thread.refusal is not None:
            raise thread.refusal
        if self._sent - self._fated >= self._most:
            self._wait_for_room()
        # No thread of CPython is put aside between reading and writing a counter: it is on jumps and calls only.
        self._sent += 1
        self._waiting.append((message, token))
        if type(token) is AwaitedMessage:
            self._hurried = True  # only now: the loop looks at this before it takes what waits
        if not self._posted:
            self._posted = True
            try:
                thread.post(self._cross)
            except BaseException:
                self._posted = False  # interrupted: the next message wakes the loop up for both
                raise
        if thread.ended:
            self.give_up()

    def _wait_for_room(self) -> None:
        if not self._blocks or self._thread.inside:
            raise QueueFullError(
                f"{self._producer.topic()}: {self._sent - self._fated} messages of producer "
                f"{self._producer.producer_name()} wait for their receipts; "
                "wait for some of them, raise max_pending_messages or turn block_if_queue_full on"
            )
        while self._sent - self._fated >= self._most:
            self._thread.check()
            waiter = threading.Lock()
            waiter.acquire()
            self._room.append(waiter)
            if self._sent - self._fated >= self._most and not self._thread.ended:
                waiter.acquire()

    def _cross(self) -> None:
        """Take over what was added, on the loop."""
        self._posted = False
        hurried, self._hurried = self._hurried, False
        waiting = self._waiting
        send = self._producer.send_with
        for _ in range(len(waiting)):
            message, token = waiting.popleft()
            try:
                send(message, token)
            except Exception as error:
                token.set_exception(error)
        if hurried:
            self._producer.hurry(any_delay=True)

    def count_fate(self) -> None:
        """Count one message less that waits for its fate, on the loop."""
        self._fated += 1
        if self._room and self._sent - self._fated <= self._most >> 1:
            self._let_in()

    def _let_in(self) -> None:
        while self._room:
            self._room.popleft().release()

    def give_up(self) -> None:
        """Fail what the loop has not taken and never will, and let those go on who wait for room."""
        while self._waiting:
            try:
                _, token = self._waiting.popleft()
            except IndexError:
                break
            token.set_exception(AlreadyClosedError(f"{self._producer.topic()}: the client is closed"))
        self._let_in()

    def forget(self) -> None:
        """Forget what was added, in a process that was forked off: the other one sends it."""
        self._waiting = deque()
