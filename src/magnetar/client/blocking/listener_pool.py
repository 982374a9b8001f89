"""The threads that call listeners: each listener has one of them, so its messages come one by one and in order."""

from __future__ import annotations

import logging
import queue
import threading
import weakref
from collections.abc import Callable
from typing import Any, Final, Never

from magnetar.client.blocking.hand_over import HandOver
from magnetar.client.errors import ArgumentError
from magnetar.client.machines.message import Message

Listener = Callable[[Any, Message], object]
"""A function of the consumer or reader and a message, which it acknowledges itself."""

_LOG: Final = logging.getLogger(__name__)
_TURN: Final = 100
"""Messages of one listener before another one of its thread has a turn."""


class ListenerPool:
    """The threads of one client, started when the first listener needs them; daemons, which end with the client."""

    def __init__(self, threads: int, name: str) -> None:
        self._name = name
        self._turns = [queue.SimpleQueue[Callable[[], object] | None]() for _ in range(threads)]
        self._started = 0
        self._listeners = 0
        self.kept: set[ListenerTurns] = set()
        """Listeners whose consumers are open: no other consumer may have them."""
        weakref.finalize(self, _stop, self._turns).atexit = False

    def assign(self) -> queue.SimpleQueue[Callable[[], object] | None]:
        """Return where the turns of a new listener are to be put."""
        number = self._listeners % len(self._turns)
        self._listeners += 1
        turns = self._turns[number]
        if self._started <= number:
            self._started += 1
            name = f"listeners of {self._name}"
            threading.Thread(target=_take_turns, args=(turns,), name=name, daemon=True).start()
        return turns

    def stop(self) -> None:
        """Have the threads end after the message that they are at."""
        self.kept.clear()
        _stop(self._turns)


class ListenerTurns:
    """Calls one listener with the messages of one consumer."""

    def __init__(self, pool: ListenerPool, hand_over: HandOver, handle: object, listener: Listener) -> None:
        self._turns = pool.assign()
        self._hand_over = hand_over
        self._handle = handle
        self._listener = listener
        self._scheduled = threading.Lock()
        """Held from when a turn was put until it has seen that no message is left."""
        self.paused = False
        self._kept = pool.kept
        self._kept.add(self)
        hand_over.on_messages, hand_over.listens = self.schedule, self._waits
        hand_over.begin()

    def schedule(self) -> None:
        """Put a turn, unless one is put already."""
        if not self.paused and self._scheduled.acquire(blocking=False):
            self._turns.put(self._run)

    def _waits(self) -> bool:
        return not self.paused and not self._scheduled.locked()

    def end(self) -> None:
        """Call the listener no more after the message it is at."""
        self.paused = True
        self._kept.discard(self)

    def _run(self) -> None:
        for _ in range(_TURN):
            message = None if self.paused else self._hand_over.take_nowait()
            if message is None:
                self._scheduled.release()
                if self._hand_over.lends:  # they came after the look
                    self.schedule()
                else:  # perhaps the loop has taken back what was lent, and the last one was not taken
                    self._hand_over.begin()
                return
            try:
                self._listener(self._handle, message)
            except BaseException:  # also SystemExit: it would end the thread, and with it other listeners
                _LOG.exception("a listener failed; message %s stays unacknowledged", message.message_id())
        self._turns.put(self._run)


def refuse_receive(_timeout_millis: int | None = None) -> Never:
    """Raise ArgumentError: a consumer with a listener is not to be received from."""
    raise ArgumentError(
        "the message_listener of this consumer gets its messages; receive and a listener exclude each other"
    )


def _stop(all_turns: list[queue.SimpleQueue[Callable[[], object] | None]]) -> None:
    for turns in all_turns:
        turns.put(None)


def _take_turns(turns: queue.SimpleQueue[Callable[[], object] | None]) -> None:
    while (turn := turns.get()) is not None:
        try:
            turn()
        except Exception as error:  # the consumer was closed, or has failed: its messages have come to an end
            _LOG.info("a listener gets no message any more: %s", error)
