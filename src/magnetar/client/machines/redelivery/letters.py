"""The copy of a message on a retry letter or dead letter topic, with Java's names of properties (rules 6.4.4, 6.5.3).

A copy keeps payload, key, ordering key, event time and properties. Where it came from is said once and stays, however
often it is copied; what happened last is said anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from magnetar.client.machines.message import Message
from magnetar.client.machines.message_id import MessageId
from magnetar.client.machines.outgoing.outgoing_message import OutgoingMessage
from magnetar.client.machines.redelivery.dead_letter_policy import base_topic
from magnetar.client.machines.redelivery.last_deliveries import DeadMessage

REAL_TOPIC: Final = "REAL_TOPIC"
REAL_SUBSCRIPTION: Final = "REAL_SUBSCRIPTION"
ORIGIN_MESSAGE_ID: Final = "ORIGIN_MESSAGE_ID"
ORIGIN_MESSAGE_ID_OLD: Final = "ORIGIN_MESSAGE_IDY_TIME"
"""The name before it was put right; written, too, as Java does."""
RECONSUMETIMES: Final = "RECONSUMETIMES"
DELAY_TIME: Final = "DELAY_TIME"

DEAD_LETTER_CAUSE: Final = "DEAD_LETTER_CAUSE"
"""From here on ours: a word of `DeathCause`."""
DEAD_LETTER_REASON: Final = "DEAD_LETTER_REASON"
"""What the application said when it rejected the message."""
DEAD_LETTER_DELIVERIES: Final = "DEAD_LETTER_DELIVERIES"
DEAD_LETTER_CONSUMER: Final = "DEAD_LETTER_CONSUMER"
ORIGIN_PUBLISH_TIME: Final = "ORIGIN_PUBLISH_TIME"
EXCEPTION_CLASS: Final = "EXCEPTION_CLASS"
EXCEPTION_MESSAGE: Final = "EXCEPTION_MESSAGE"
EXCEPTION_TEXT_MAX: Final = 1_024
"""Characters of an error's text that are kept."""


def origin_text(message_id: MessageId) -> str:
    """Return an id as the Java client prints it: ``ledger:entry:partition``, of a batch ``:index``, of chunks both
    ends."""
    text = f"{message_id.ledger_id()}:{message_id.entry_id()}:{message_id.partition()}"
    if message_id.chunks:
        ledger, entry = message_id.chunks[0]
        return f"{ledger}:{entry}:{message_id.partition()};{text}"
    return f"{text}:{message_id.batch_index()}" if message_id.batch_index() >= 0 else text


def retries_of(properties: Mapping[str, str]) -> int:
    """Return how often a message was retried; what is no number was written by a stranger, and counts as none."""
    text = properties.get(RECONSUMETIMES, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def retry_properties(
    message: Message[Any],
    subscription: str,
    delay_ms: int,
    custom_properties: Mapping[str, str] | None = None,
    error: BaseException | str | None = None,
) -> dict[str, str]:
    """Return the properties of a message that is retried once more."""
    properties = _origin(message, subscription, base_topic(message.topic_name()))
    properties.update(custom_properties or {})
    properties[RECONSUMETIMES] = str(retries_of(properties) + 1)
    properties[DELAY_TIME] = str(delay_ms)
    properties.update(_said(error))
    return properties


def retry_letter(message: Message[Any], properties: Mapping[str, str], deliver_at: int) -> OutgoingMessage:
    """Return the copy for a retry letter topic, which comes at ``deliver_at``, 0 for at once."""
    return replace(_copy(message, properties), deliver_at=deliver_at)


def dead_letter(
    dead: DeadMessage, subscription: str, consumer: str = "", retried: Mapping[str, str] | None = None
) -> OutgoingMessage:
    """Return the copy for a dead letter topic; ``retried`` are the properties of the retry that it is instead of."""
    message = dead.message
    properties = dict(retried) if retried is not None else _origin(message, subscription, message.topic_name())
    properties[DEAD_LETTER_CAUSE] = dead.cause.value
    properties[DEAD_LETTER_DELIVERIES] = str(message.redelivery_count() + 1)
    properties[ORIGIN_PUBLISH_TIME] = str(message.publish_timestamp())
    if dead.reason:
        properties[DEAD_LETTER_REASON] = _short(dead.reason)
    if consumer:
        properties[DEAD_LETTER_CONSUMER] = consumer
    properties.update(_said(dead.error))
    return _copy(message, properties)


def _origin(message: Message[Any], subscription: str, topic: str) -> dict[str, str]:
    properties = message.properties()
    properties.setdefault(REAL_TOPIC, topic)
    origin = origin_text(message.message_id())
    properties.setdefault(ORIGIN_MESSAGE_ID_OLD, origin)
    properties.setdefault(ORIGIN_MESSAGE_ID, origin)
    properties.setdefault(REAL_SUBSCRIPTION, subscription)
    return properties


def _said(error: BaseException | str | None) -> dict[str, str]:
    if error is None:
        return {}
    if isinstance(error, str):
        return {EXCEPTION_MESSAGE: _short(error)}
    kind = type(error)
    try:
        text = str(error)
    except Exception:  # an error of the application's own that cannot be printed
        text = ""
    return {EXCEPTION_CLASS: f"{kind.__module__}.{kind.__qualname__}", EXCEPTION_MESSAGE: _short(text)}


def _short(text: str) -> str:
    return text[:EXCEPTION_TEXT_MAX].encode("utf-8", "replace").decode()


def _copy(message: Message[Any], properties: Mapping[str, str]) -> OutgoingMessage:
    return OutgoingMessage(
        message.data(),
        tuple(sorted(properties.items())),
        message.partition_key() if message.has_key() else None,
        message.key_is_base64,
        message.ordering_key_bytes() or None,
        message.event_timestamp(),
        null_value=message.has_null_value(),
    )
