"""Messages on their way from the loop to threads, many at a time.

The loop lends a list of messages, the next one last; threads take them off its end, and have the loop woken up when the
list is empty. Then it gives back the permits of all of them and lends the next ones. What is lent counts as in the
receiver queue until then, so prefetch is never above its bound; and the loop empties the list when its messages come
again, after a lost connection or a seek. The last one is not taken then: a thread looks before it waits, and a listener
has the loop look whenever it finds nothing, so that messages which come are always waited for.
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from magnetar.client.aio.consumers.consumer import Consumer as AioConsumer
from magnetar.client.aio.parameters import checked
from magnetar.client.blocking.loop_thread import LoopThread
from magnetar.client.errors import AlreadyClosedError, ClientTimeoutError, ForkedClientError
from magnetar.client.machines.message import Message
from magnetar.runtime.clock import steady_seconds

_LOG: Final = logging.getLogger(__name__)
_NOTHING: Final[list[Message[Any]]] = []


class HandOver:
    """What one consumer has lent to threads."""

    def __init__(self, thread: LoopThread, consumer: AioConsumer[Any]) -> None:
        self._thread = thread
        self._consumer = consumer
        self._at_hand = _NOTHING
        self._held: Message[Any] | None = None
        """One that a thread took when it was interrupted."""
        self._waiters: list[_Waiter] = []
        self._failure: Exception | None = None
        self._promised = 0
        """Threads that were woken for what is lent, and have not taken it all."""
        self.listens: Callable[[], bool] = bool
        """Whether a listener waits for a message."""
        self.on_messages: Callable[[], object] | None = None
        """What is called, on the loop, when messages are lent while no thread waits: a listener's turn."""
        self._told: Exception | None = None
        """Why a topic gives a listener no more, as the log has it."""
        consumer.recall = _Recall(self)
        thread.gives_up_with(self)

    def take(self, timeout_millis: int | None) -> Message[Any]:
        """Return the next message. Raises ClientTimeoutError, AlreadyClosedError, and why there is none any more.

        Between looking at the message and taking it off the list there is no call and no jump, so that CPython neither
        puts the thread aside nor handles a signal: no other thread takes it too, and Ctrl-C does not lose it.
        """
        deadline = None
        while True:
            if self._held is not None:
                # it comes before what was lent meanwhile
                message, self._held = self._held, None
                return message
            at_hand = self._at_hand
            try:
                message = at_hand[-1]
                del at_hand[-1]
            except IndexError:
                if timeout_millis is not None and deadline is None:
                    checked("receive", timeout_millis=timeout_millis)
                    deadline = steady_seconds() + timeout_millis / 1000
                self._wait(deadline, timeout_millis)
                continue
            if not at_hand:
                try:
                    self._thread.post(self._advance)
                except BaseException:
                    self._held = message
                    raise
            return message

    @property
    def lends(self) -> bool:
        """Whether a message may be taken without waiting."""
        return bool(self._at_hand) or self._held is not None

    def take_nowait(self) -> Message[Any] | None:
        """Return the next message if one is lent, None otherwise; for listeners' threads, which no signal reaches."""
        at_hand = self._at_hand
        try:
            message = at_hand[-1]
            del at_hand[-1]
        except IndexError:
            held, self._held = self._held, None
            return held
        if not at_hand:
            self._thread.post(self._advance)
        return message

    def _wait(self, deadline: float | None, timeout_millis: int | None) -> None:
        """Wait until messages are lent, or one of several threads has to look again."""
        self._thread.check()
        self._thread.may_wait()
        error = self._failure
        if error is not None and not self._at_hand:
            self._failure = None
            raise error
        waiter = _Waiter()
        self._waiters.append(waiter)
        try:
            self._thread.post(self._advance)
            if self._thread.ended:
                self._thread.check()
                return
            if deadline is None:
                waiter.woken.acquire()
                return
            if waiter.woken.acquire(timeout=max(deadline - steady_seconds(), 0)):
                return
            waiter.late = True
            if not waiter.answered:
                waiter.woken.acquire()  # the loop is always heard: it may have messages even if the time is over
            if not self._at_hand and self._failure is None:
                self._thread.check()
                raise ClientTimeoutError(f"{self._consumer.topic()}: no message came in {timeout_millis} ms")
        except BaseException:
            self._leave(waiter)
            if self._consumer.on_demand and not self._thread.ended:
                self._promised = 0
                self._thread.post(self._advance)  # one waits less
            raise
        finally:
            self._leave(waiter)

    def _leave(self, waiter: _Waiter) -> None:
        if waiter in self._waiters:
            with suppress(ValueError):
                self._waiters.remove(waiter)

    def _advance(self) -> None:
        """Lend the next messages, on the loop."""
        try:
            if not self._at_hand:
                self._promised = 0
            listening = self.listens() if self._consumer.on_demand else self.on_messages is not None
            wanted = len(self._waiters) + self._promised + listening
            self._at_hand = at_hand = self._consumer.lend(wanted=wanted)
        except Exception as error:
            self._failure = error
            self._at_hand = at_hand = _NOTHING
            if self.on_messages is not None:
                self._goes_on(error)
        else:
            self._failure = None
            if not at_hand:
                self._consumer.when_messages = _Arrival(self)
        self._answer(all_of_them=bool(at_hand) or self._failure is not None)
        if at_hand and self.on_messages is not None:
            self.on_messages()

    def _goes_on(self, error: Exception) -> None:
        """Have a listener get what other topics of its consumer have, and say why one has no more."""
        if isinstance(error, AlreadyClosedError | ForkedClientError):
            return
        self._consumer.when_messages = _Arrival(self)
        if error is not self._told:
            self._told = error
            _LOG.error("%s: a topic of this listener can be read no more: %s", self._consumer.topic(), error)

    def _answer(self, *, all_of_them: bool) -> None:
        self._promised += len(self._waiters) if all_of_them else 0
        for waiter in list(self._waiters):
            waiter.answered = True
            if all_of_them or waiter.late:
                with suppress(ValueError):
                    self._waiters.remove(waiter)
                    waiter.woken.release()

    def recall(self) -> None:
        """Lend nothing for now, on the loop, which takes messages itself."""
        self._at_hand = _NOTHING

    def begin(self) -> None:
        """Lend messages as soon as there are any, for a listener."""
        self._thread.post(self._advance)

    def advance_soon(self) -> None:
        """Lend what comes in this turn of the loop, at its end."""
        self._thread.loop.call_soon(self._advance)

    def moved(self) -> None:
        """Forget what an interrupted thread had taken: after a seek other messages come."""
        self._held = None

    def forget(self) -> None:
        """Lend nothing any more, in a process that was forked off or of a consumer that is closed."""
        self._at_hand = []
        self._held = None

    def give_up(self) -> None:
        """Let those go on who wait, since the loop has ended."""
        self._answer(all_of_them=True)


class _Waiter:
    """One thread that waits; it has a lock of its own, the only thing to wait for that a signal leaves as it was."""

    __slots__ = ("answered", "late", "woken")

    def __init__(self) -> None:
        self.woken = threading.Lock()
        self.woken.acquire()
        self.answered = False
        """Whether the loop has looked for messages since it waits."""
        self.late = False
        """Whether its time is over, so that any answer will do."""


class _Recall:
    """What a consumer calls before it takes back what is lent; it keeps no hand-over alive either."""

    __slots__ = ("_hand_over",)

    def __init__(self, hand_over: HandOver) -> None:
        self._hand_over = weakref.ref(hand_over)

    def __call__(self) -> None:
        found = self._hand_over()
        if found is not None:
            found.recall()


class _Arrival:
    """What a consumer calls when it has messages again; it does not keep the hand-over alive."""

    __slots__ = ("_hand_over",)

    def __init__(self, hand_over: HandOver) -> None:
        self._hand_over = weakref.ref(hand_over)

    def __call__(self) -> None:
        found = self._hand_over()
        if found is not None:
            found.advance_soon()
