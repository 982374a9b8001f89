"""What a handler says about a message: nothing (it is done with), `Retry` or `Reject`; both are returned or raised."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from magnetar.client.arguments.expected_argument import ExpectedArgument
from magnetar.client.errors import ClientError
from magnetar.client.machines.message_id import MessageId
from magnetar.model.errors import InvalidValueError

_AFTER: Final = ExpectedArgument(
    "a timedelta, or a number of seconds from 0",
    lambda given: float(given.total_seconds() if isinstance(given, timedelta) else given) >= 0,
).or_none()


class Retry(Exception):
    """Have the message come again, ``after`` so many seconds (or a timedelta); None: as the run says."""

    def __init__(self, after: float | timedelta | None = None) -> None:
        """Raises InvalidValueError if ``after`` is below 0 or no number."""
        _AFTER.check("after", after)
        seconds = after.total_seconds() if isinstance(after, timedelta) else after
        if seconds is not None and not 0 <= seconds < float("inf"):
            raise InvalidValueError(f"Retry(after={after!r}): give seconds from 0 on, or a timedelta")
        super().__init__("try again" if seconds is None else f"try again after {seconds:g} s")
        self.after = seconds


class Reject(Exception):
    """Give the message up: it goes to the dead letter topic, with the reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


Outcome = Retry | Reject | None


class RejectedMessageError(ClientError):
    """A handler rejected a message, and the consumer has no dead letter topic for it; it stays unacknowledged."""

    def __init__(self, topic: str, message_id: MessageId, reason: str) -> None:
        super().__init__(
            f"{topic}: message {message_id} was rejected ({reason}), and the consumer has no dead letter topic; "
            "subscribe with dead_letter_policy, or return from the handler to drop a message"
        )


@dataclass(slots=True)
class RunReport:
    """What a run of a handler has done."""

    handled: int = 0
    """Messages that were handled and acknowledged."""
    retried: int = 0
    """Times that a message was to come again."""
    rejected: int = 0
    """Messages that went to the dead letter topic."""
    given_back: int = 0
    """Messages that were at hand when the run ended and come again: not begun, held for later, or cancelled."""
