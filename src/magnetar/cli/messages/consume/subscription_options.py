"""What the flags of ``magnetar consume`` mean for `Client.subscribe`."""

from __future__ import annotations

import re
from typing import Any, Final

from magnetar.model.errors import InvalidValueError
from magnetar.model.subscription_types import SubType
from magnetar.protocol.commands import InitialPosition

_MODES: Final = {"Durable": True, "NonDurable": False}


def subscription_options(
    kind: str, position: str, mode: str, queue_size: int, chunked_max: int, ack_oldest: bool, replicated: bool
) -> dict[str, Any]:
    """Return the parameters of a subscription. Raises InvalidValueError naming the flag."""
    found: dict[str, Any] = {
        "consumer_type": chosen("--subscription-type", kind, SubType.__members__),
        "initial_position": chosen("--subscription-position", position, InitialPosition.__members__),
        "durable": chosen("--subscription-mode", mode, _MODES),
        "auto_ack_oldest_chunked_message_on_queue_full": ack_oldest,
        "replicate_subscription_state_enabled": replicated,
    }
    if min(queue_size, chunked_max) < 0:
        raise InvalidValueError("--queue-size and --max_chunked_msg are not below 0")
    if queue_size:
        found["receiver_queue_size"] = queue_size
    if chunked_max:
        found["max_pending_chunked_message"] = chunked_max
    return found


def chosen(flag: str, text: str, choices: Any) -> Any:
    """Return the value of a choice by its name. Raises InvalidValueError naming the flag."""
    for name, value in choices.items():
        if name.lower() == text.lower():
            return value
    raise InvalidValueError(f"{flag} {text!r} is none of {', '.join(choices)}")


def wanted_topic(topic: str, regex: bool) -> str | re.Pattern[str]:
    """Return the topic, or the pattern of topics. Raises InvalidValueError."""
    if not regex:
        return topic
    try:
        return re.compile(topic)
    except re.error as error:
        raise InvalidValueError(f"--regex: {topic!r} is no regular expression: {error}") from None
