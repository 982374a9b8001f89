"""What the calls of the test kit take; the errors about what does not fit it name the parameter."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from magnetar.client.arguments import kinds
from magnetar.client.arguments.expected_argument import ExpectedArgument, check_all
from magnetar.client.arguments.kinds import INT32_MAX, TRUTH
from magnetar.config.settings import Settings
from magnetar.model.errors import ServerError

SEED_MAX: Final = (1 << 63) - 1
MESSAGES_MAX: Final = 100_000
DELAY_MAX: Final = 366 * 86_400.0
_NUMBER_MAX: Final = 1e15
"""Of a time that is a sum; what may come of it is smaller."""


def _is_number(given: object) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool) and -_NUMBER_MAX <= given <= _NUMBER_MAX


def _is_time(given: object) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool) and float(given) == given


def _is_id(given: Any) -> bool:
    return not isinstance(given, type) and all(type(one) is int for one in (given.ledger_id(), given.entry_id()))


def _are_settings(given: Any) -> bool:
    return isinstance(given, Settings) or (isinstance(given, Mapping) and all(map(kinds.is_text, given)))


_TEXT: Final = ExpectedArgument("a text", kinds.is_text)
_TOPIC: Final = ExpectedArgument("the name of a topic", lambda given: isinstance(given, str))
"""Whether it is one is judged where it is parsed, with an error of its own."""
_NUMBER: Final = ExpectedArgument("a number", _is_number)
_PARAMETERS: Final[dict[str, ExpectedArgument]] = {
    "seed": kinds.whole(0, SEED_MAX).or_none(),
    "settings": ExpectedArgument("Settings, or a mapping of names of settings to values", _are_settings).or_none(),
    "with_rest": TRUTH,
    "name": _TOPIC,
    "topic": _TOPIC.or_none(),
    "explain.topic": _TOPIC,
    "message_id": ExpectedArgument("a MessageId", _is_id),
    "system": TRUTH,
    "limit": kinds.whole(1, MESSAGES_MAX),
    "count": kinds.whole(0, MESSAGES_MAX - 1),
    "subscription": _TEXT,
    "timeout": ExpectedArgument("a number of seconds", _is_time),
    "command": ExpectedArgument("the name of a command", kinds.is_text),
    "times": kinds.whole(1, INT32_MAX).or_none(),
    "drop.subscription": _TEXT.or_none(),
    "delay.subscription": _TEXT.or_none(),
    "chance": kinds.number(0, 1, "chance", above=True),
    "cut": TRUTH,
    "error": ExpectedArgument(
        "a ServerError, or its name", lambda given: isinstance(given, ServerError) or kinds.is_text(given)
    ),
    "message": _TEXT,
    "delay.seconds": kinds.number(0, DELAY_MAX, "seconds"),
    "seconds": ExpectedArgument(
        "a number, or a timedelta,", lambda given: isinstance(given, timedelta) or _is_number(given)
    ),
    **dict.fromkeys(("minutes", "hours", "days"), _NUMBER),
    "loop": kinds.instance("an event loop", asyncio.AbstractEventLoop).or_none(),
}


def checked(where: str, **given: object) -> None:
    """Check the arguments of one call, ``where``. Raises ArgumentError, which is a ValueError."""
    check_all(_PARAMETERS, given, where)
