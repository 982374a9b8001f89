"""The life of a producer or consumer at a broker, as a table of states (rules 6.10.1, 6.10.4).

    OPENING   lookup, connection and the opening command are under way
    READY     the broker serves it
    PAUSED    the last attempt failed or the broker let go of it; the next one comes after a pause
    CLOSED    the application closed it
    FAILED    it will never be ready again; ``error`` says why

Before it was ready for the first time, an error that waiting cannot heal ends it, and so does the time-out of the
operation. Afterwards it is opened again for ever, but for the few errors that are final.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final, NamedTuple

from magnetar.client.errors import (
    AlreadyClosedError,
    ClientTimeoutError,
    ConnectionLostError,
    RefusedError,
    WrongPortError,
)
from magnetar.model.errors import ServerError

_JITTER: Final = 0.2
"""The share of a pause that chance takes away, so that clients do not come back all at once."""
_FINAL: Final = frozenset(
    {ServerError.ProducerFenced, ServerError.TopicTerminatedError, ServerError.IncompatibleSchema}
)


class LifeState(Enum):
    OPENING = auto()
    READY = auto()
    PAUSED = auto()
    CLOSED = auto()
    FAILED = auto()


class LifeEvent(Enum):
    OPENED = auto()
    LOST = auto()
    PAUSE_OVER = auto()
    CLOSE = auto()
    GIVEN_UP = auto()


TRANSITIONS: Final[dict[tuple[LifeState, LifeEvent], LifeState]] = {
    (LifeState.OPENING, LifeEvent.OPENED): LifeState.READY,
    (LifeState.OPENING, LifeEvent.LOST): LifeState.PAUSED,
    (LifeState.OPENING, LifeEvent.GIVEN_UP): LifeState.FAILED,
    (LifeState.OPENING, LifeEvent.CLOSE): LifeState.CLOSED,
    (LifeState.READY, LifeEvent.LOST): LifeState.PAUSED,
    (LifeState.READY, LifeEvent.GIVEN_UP): LifeState.FAILED,
    (LifeState.READY, LifeEvent.CLOSE): LifeState.CLOSED,
    (LifeState.PAUSED, LifeEvent.PAUSE_OVER): LifeState.OPENING,
    (LifeState.PAUSED, LifeEvent.CLOSE): LifeState.CLOSED,
    (LifeState.PAUSED, LifeEvent.GIVEN_UP): LifeState.FAILED,
    (LifeState.FAILED, LifeEvent.CLOSE): LifeState.CLOSED,
    (LifeState.CLOSED, LifeEvent.CLOSE): LifeState.CLOSED,
}
"""What is not here cannot happen; `HandleLife` raises an AssertionError about it."""


class Backoff(NamedTuple):
    """How long attempts are apart, in seconds."""

    first: float = 0.1
    longest: float = 60.0


USUAL_BACKOFF: Final = Backoff()
"""As all clients of Pulsar have it."""


class Pauses:
    """Pauses between attempts, doubling from the first to the longest, less up to a fifth by chance."""

    __slots__ = ("_backoff", "_next")

    def __init__(self, backoff: Backoff = USUAL_BACKOFF) -> None:
        self._backoff = backoff
        self._next = backoff.first

    def next(self, chance: float) -> float:
        """Return the next pause in seconds; ``chance`` is from 0 to 1."""
        pause = min(self._next, self._backoff.longest)
        self._next = min(pause * 2, self._backoff.longest)
        return pause * (1 - _JITTER * chance)

    def reset(self) -> None:
        """Begin with the shortest pause again."""
        self._next = self._backoff.first


class HandleLife:
    """The state of one handle, and when it is tried again."""

    def __init__(self, give_up_at: float, backoff: Backoff = USUAL_BACKOFF) -> None:
        """``give_up_at``: the time by which it must have been ready once."""
        self.state = LifeState.OPENING
        self.error: Exception | None = None
        self.was_ready = False
        self.openings = 0
        """How often it was ready."""
        self._give_up_at = give_up_at
        self._pauses = Pauses(backoff)

    def on(self, event: LifeEvent) -> None:
        """Move to the state that the table gives."""
        target = TRANSITIONS.get((self.state, event))
        assert target is not None, f"{event.name} while {self.state.name}"
        self.state = target

    @property
    def ended(self) -> bool:
        """Whether it will not be ready again."""
        return self.state in (LifeState.CLOSED, LifeState.FAILED)

    def opened(self) -> None:
        """Note that the broker serves it."""
        self.on(LifeEvent.OPENED)
        self.was_ready = True
        self.openings += 1
        self._pauses.reset()

    def failed(self, error: Exception, now: float, chance: float) -> float | None:
        """Note a failed attempt or a loss; returns the pause before the next attempt, None if there is none."""
        pause = self._pauses.next(chance)
        if self._is_final(error) or (not self.was_ready and now + pause > self._give_up_at):
            self.error = error
            self.on(LifeEvent.GIVEN_UP)
            return None
        self.on(LifeEvent.LOST)
        return pause

    def _is_final(self, error: Exception) -> bool:
        if isinstance(error, AlreadyClosedError):
            return True  # the client is closed, and nothing of it is opened again
        if isinstance(error, RefusedError):
            return error.code in _FINAL if self.was_ready else not error.retriable
        if self.was_ready:
            return False
        return isinstance(error, WrongPortError) or not isinstance(error, ConnectionLostError | ClientTimeoutError)
