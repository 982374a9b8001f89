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
from magnetar.client.errors import AlreadyClosedError, ClientError, MemoryFullError, QueueFullError, result_of
from magnetar.client.machines.message_id import MessageId
from magnetar.client.machines.outgoing.entry_fate import EntryFate
from magnetar.client.machines.outgoing.outgoing_message import OutgoingMessage
from magnetar.client.refusals import Result

Callback = Callable[[Result, MessageId], object]
"""What hears the fate of a message; the id is (-1,-1,-1,-1) if there is none."""

_LOG: Final = logging.getLogger(__name__)
_ROOM_PAUSE: Final = 0.01
"""Seconds that a thread waits at most while there is room in a queue that is more than half full."""
_NOWHERE: Final = MessageId()


class PostedMessage:
    """One message that is on its way, as the loop sees it: it completes this as it would a future."""

    __slots__ = ("_callback", "_queue")

    def __init__(self, queue: SendQueue, callback: Callback | None) -> None:
        self._queue = queue
        self._callback = callback

    def done(self) -> bool:
        """Whether the sender has given up: never so."""
        return False

    def set_result(self, result: MessageId, /) -> None:
        """Tell the application where the message is."""
        self._queue.count_fates(1)
        callback = self._callback
        if callback is not None:
            try:
                callback(Result.Ok, result)
            except BaseException:  # also SystemExit, which would end the client
                _LOG.exception("a callback of send_async failed")

    def set_exception(self, error: Exception, /) -> None:
        """Tell the application why the message is not stored, as far as is known."""
        if self._callback is None:
            self._queue.unstored(1, error)
            return
        self._queue.count_fates(1)
        try:
            self._callback(result_of(error), _NOWHERE)
        except BaseException:
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
        """Whether the sender has given up: never so."""
        return False

    def set_result(self, result: MessageId, /) -> None:
        """Let the thread go on with the message's id."""
        self._queue.count_fates(1)
        self._id = result
        self._fate.release()

    def set_exception(self, error: Exception, /) -> None:
        """Let the thread go on with an error."""
        self._queue.count_fates(1)
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


class UnheardMessages:
    """Messages of one entry whose fate no callback hears."""

    __slots__ = ("_queue", "count")

    def __init__(self, queue: SendQueue) -> None:
        self._queue = queue
        self.count = 0

    def done(self) -> bool:
        """Whether the sender has given up: never so."""
        return False

    def set_result(self, _: MessageId, /) -> None:
        """Make room."""
        self._queue.count_fates(self.count)

    def set_exception(self, error: Exception, /) -> None:
        """Note in the log that they are not stored."""
        self._queue.unstored(self.count, error)

    def exception(self) -> None:
        """Note that the error was seen."""


Waiting = bytes | tuple[OutgoingMessage | bytes, PostedMessage | AwaitedMessage]
"""A message and who gets its receipt; bytes alone if none is wanted."""


def _size(waiting: Waiting) -> int:
    if isinstance(waiting, bytes):
        return len(waiting)
    message = waiting[0]
    return len(message) if isinstance(message, bytes) else message.weight


def _of_the_client(error: BaseException) -> Exception:
    """Return the error for a sender; a SystemExit that a message router raises must not end the sender's thread."""
    if isinstance(error, Exception):
        return error
    return ClientError(f"a function of the application that a message was handed to raised {type(error).__name__}")


class SendQueue:
    """The messages of one producer between its threads and its loop."""

    def __init__(self, thread: LoopThread, producer: AioProducer[Any]) -> None:
        self._thread = thread
        self._producer = producer
        options = producer.options
        self._blocks = options.block_if_queue_full
        self._each = options.limits.pending_messages or sys.maxsize
        # Without waiting each partition says itself that it is full; with it none of them may ever be.
        self._most = self._each if self._blocks else self._each * producer.partitions
        self._memory = producer.memory
        self._waiting: deque[Waiting] = deque()
        self._unheard: tuple[EntryFate | None, UnheardMessages] = None, UnheardMessages(self)
        """What became of the entry that messages without a callback joined last, on the loop."""
        self._posted = False
        self._hurried = False
        """Whether a thread waits for one of the messages that wait."""
        self._sent = 0
        """Messages added; only threads count it."""
        self._fated = 0
        """Messages whose fate is known; only the loop counts it."""
        self._looking = False
        """Whether a timer looks for room, on the loop."""
        self._unstored: dict[str, int] = {}
        """Messages without a callback that failed since the last line in the log, by why."""
        self._room: deque[threading.Lock] = deque()
        """Locks that threads wait at for room, each one its own."""
        thread.gives_up_with(self)

    def add(self, waiting: Waiting, *, hurried: bool = False) -> None:
        """Add a message, ``hurried`` if a thread waits for its receipt; waits for room if the producer was made so.

        Raises QueueFullError, AlreadyClosedError.
        """
        thread = self._thread
        if thread.refusal is not None:
            raise thread.refusal
        memory = self._memory
        left = memory.free + memory.crossed - memory.crossing
        if left <= memory.floor or self._sent - self._fated >= self._most:
            self._wait_for_room()
        size = len(waiting) if type(waiting) is bytes else _size(waiting)
        # No thread of CPython is put aside between reading and writing a counter: it is on jumps and calls only.
        self._sent += 1
        memory.crossing += size
        self._waiting.append(waiting)
        if hurried:
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
        memory = self._memory
        if not self._blocks:
            self._most = self._each * self._producer.partitions  # perhaps there are more by now
        if not self._blocks or self._thread.inside:
            if memory.full:
                raise MemoryFullError(self._producer.topic(), memory.limit)
            if not self._blocks and self._sent - self._fated < self._most:
                return
            raise QueueFullError(
                f"{self._producer.topic()}: {self._sent - self._fated} messages of producer "
                f"{self._producer.producer_name()} wait for their receipts; "
                "wait for some of them, raise max_pending_messages or turn block_if_queue_full on"
            )
        while self._full():
            self._thread.check()
            waiter = threading.Lock()
            waiter.acquire()
            self._room.append(waiter)
            if memory.full:
                memory.waiting.add(self._let_in)
            if self._full() and not self._thread.ended:
                waiter.acquire()

    def _full(self) -> bool:
        return self._sent - self._fated >= self._most or self._memory.full

    def _cross(self) -> None:
        """Take over what was added, on the loop."""
        self._posted = False
        hurried, self._hurried = self._hurried, False
        waiting = self._waiting
        taken = [waiting.popleft() for _ in range(len(waiting))]
        send = self._producer.send_with
        at = stop = 0
        while at < len(taken):
            one = taken[at]
            if isinstance(one, bytes):
                if at >= stop:
                    others = (other for other in range(at, len(taken)) if not isinstance(taken[other], bytes))
                    stop = next(others, len(taken))
                at += self._send_unheard(taken, at, stop)
                continue
            at += 1
            message, token = one
            try:
                send(message, token)
            except BaseException as error:
                token.set_exception(_of_the_client(error))
        self._crossed(taken)
        if hurried:
            self._producer.hurry(any_delay=True)

    def _crossed(self, taken: list[Waiting]) -> None:
        memory = self._memory
        memory.crossed += sum(map(_size, taken))
        if memory.waiting:
            memory.wake()

    def _send_unheard(self, taken: list[Any], at: int, stop: int) -> int:
        """Send bytes alone that stand from ``at`` on, as many as go at once; returns how many that is."""
        fate, count = self._producer.join_many(taken, at, stop)
        known, token = self._unheard
        if fate is not known or fate is None:
            token = UnheardMessages(self)
        if fate is None:
            token.count = 1
            try:
                self._producer.send_with(taken[at], token)
            except BaseException as error:
                token.set_exception(_of_the_client(error))
            return 1
        if fate is not known:
            fate.tokens.append((fate.messages - 1, token))
            self._unheard = fate, token
        token.count += count
        return count

    def count_fates(self, messages: int) -> None:
        """Count so many messages less that wait for their fates, on the loop."""
        self._fated += messages
        if self._room:
            if self._sent - self._fated <= self._most >> 1:
                self._let_in()
            elif not self._looking:  # others may keep it above half for ever
                self._looking = True
                self._thread.loop.call_later(_ROOM_PAUSE, self._look_for_room)

    def unstored(self, messages: int, error: Exception) -> None:
        """Note in the log that messages without a callback are not stored: one line for all of a turn of the loop."""
        self.count_fates(messages)
        if not self._unstored:
            self._thread.post(self._tell_unstored)
        text = str(error)
        self._unstored[text] = self._unstored.get(text, 0) + messages

    def _tell_unstored(self) -> None:
        unstored, self._unstored = self._unstored, {}
        for text, messages in unstored.items():
            several = "a message was" if messages == 1 else f"{messages:,} messages were"
            _LOG.warning("%s not stored, and send_async was given no callback: %s", several, text)

    def _look_for_room(self) -> None:
        self._looking = False
        if self._sent - self._fated < self._most:
            self._let_in()

    def _let_in(self) -> None:
        while self._room:
            self._room.popleft().release()

    def give_up(self) -> None:
        """Fail what the loop has not taken and never will, and let those go on who wait for room."""
        while self._waiting:
            try:
                one = self._waiting.popleft()
            except IndexError:
                break
            self._crossed([one])
            token = PostedMessage(self, None) if isinstance(one, bytes) else one[1]
            token.set_exception(AlreadyClosedError(f"{self._producer.topic()}: the client is closed"))
        self._tell_unstored()
        self._let_in()

    def forget(self) -> None:
        """Forget what was added, in a process that was forked off: the other one sends it."""
        self._waiting = deque()
