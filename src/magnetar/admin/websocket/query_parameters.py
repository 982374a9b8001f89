"""Options in the query of a WebSocket's path; unknown ones mean nothing, as in Apache Pulsar."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from magnetar.client.encryption.crypto_failure_action import ConsumerCryptoFailureAction
from magnetar.client.machines.message_id import MessageId
from magnetar.client.machines.outgoing.partition_router import HashingScheme, PartitionsRoutingMode
from magnetar.config.setting_field import INT_MAX, LONG_MAX
from magnetar.model.errors import InvalidTopicNameError, InvalidValueError, ProtocolError
from magnetar.model.names import TopicName
from magnetar.model.subscription_types import SubType
from magnetar.protocol import commands as c
from magnetar.protocol.compression import CompressionType

Query = Mapping[str, str]
Choice = TypeVar("Choice")

QUEUE_MAX: Final = 1000
"""Messages that a socket may have out, whatever it asks for."""
_ROUTING: Final = {
    "SinglePartition": PartitionsRoutingMode.UseSinglePartition,
    "RoundRobinPartition": PartitionsRoutingMode.RoundRobinDistribution,
    "CustomPartition": PartitionsRoutingMode.UseSinglePartition,
}
_COMPRESSION: Final = {one: CompressionType[one] for one in ("NONE", "LZ4", "ZLIB", "ZSTD", "SNAPPY")}
_DIGITS: Final = re.compile(r"[-+]?\d+")
_NACK_MS: Final = 60_000
_PATTERN: Final = re.compile(r"(?:[\w\-=:/%]|\\\.|\.[*+]?)+", re.ASCII)
_REPEATED: Final = re.compile(r"\.[*+]")
_REPEATED_MAX: Final = 3
_PATTERN_MAX: Final = 500
"""The broker matches in the loop that serves everybody, so nothing that can take long is let in."""
_NACK_MIN_MS: Final = 100
_BATCH_MAX: Final = 1 << 17
"""Messages that a batch has at most in an id that a peer names: no client makes batches of a hundredth of that."""


def _wrong(reason: str) -> InvalidValueError:
    return InvalidValueError(f"Invalid query params: {reason}")


def _number(query: Query, name: str, default: int, least: int = 0, refusal: str = "", *, most: int = INT_MAX) -> int:
    given = query.get(name)
    if given is None:
        return default
    try:
        found = int(given) if _DIGITS.fullmatch(given) else None
    except ValueError:  # thousands of digits
        found = None
    if found is None:
        raise _wrong(f'For input string: "{given[:80]}"')
    if found < least:
        raise _wrong(refusal or f"{name} needs to be >= {least}")
    if found > most:
        raise _wrong(f"{name} needs to be <= {most}")
    return found


def _flag(query: Query, name: str) -> bool:
    return query.get(name, "").lower() == "true"


def _choice(query: Query, name: str, choices: Mapping[str, Choice], default: str) -> Choice:
    given = query.get(name, default)
    if given not in choices:
        raise _wrong(f"Invalid {name} {given[:80]}")
    return choices[given]


def producer_options(query: Query) -> dict[str, Any]:
    """What ``Client.create_producer`` takes. Raises InvalidValueError."""
    if query.get("encryptionKeys"):
        raise _wrong("encryptionKeys: messages are not encrypted here; encrypt them before they are sent")
    return {
        "producer_name": query.get("producerName") or None,
        "send_timeout_millis": _number(query, "sendTimeoutMillis", 30_000, 0, "sendTimeout needs to be >= 0"),
        "batching_enabled": _flag(query, "batchingEnabled"),
        "batching_max_messages": max(_number(query, "batchingMaxMessages", 1000), 1),
        "batching_max_publish_delay_ms": _number(query, "batchingMaxPublishDelay", 10),
        "compression_type": _choice(query, "compressionType", _COMPRESSION, "NONE"),
        "message_routing_mode": _choice(query, "messageRoutingMode", _ROUTING, "SinglePartition"),
        "hashing_scheme": _choice(
            query, "hashingScheme", {one.name: one for one in HashingScheme}, HashingScheme.JavaStringHash.name
        ),
        "initial_sequence_id": (
            _number(query, "initialSequenceId", -1, -1, most=LONG_MAX - 1) if "initialSequenceId" in query else None
        ),
    }


def pending_max(query: Query) -> int:
    """How many messages of a producer may wait for their answers to be sent."""
    return min(_number(query, "maxPendingMessages", QUEUE_MAX) or QUEUE_MAX, QUEUE_MAX)


@dataclass(frozen=True, slots=True)
class ConsumingOptions:
    """How a consumer's socket delivers."""

    queue: int
    """Messages that may be out, unless it pulls."""
    pull: bool
    ack_timeout_ms: int
    max_redeliveries: int
    """After so many redeliveries a message is a dead letter."""
    dead_letter_topic: TopicName | None
    """``None``: there are no dead letters."""
    subscribe: dict[str, Any]
    """What ``Client.subscribe`` takes."""


def consuming_options(query: Query, topic: str, subscription: str) -> ConsumingOptions:
    """The options of a consumer. Raises InvalidValueError."""
    timeout = _number(query, "ackTimeoutMillis", 0)
    if 0 < timeout < 1000:
        raise _wrong("Ack timeout should be greater than 1000 ms")
    dead = "maxRedeliverCount" in query or "deadLetterTopic" in query
    redeliveries = _number(query, "maxRedeliverCount", 0, 1, "MaxRedeliverCount must be > 0.") if dead else 0
    if dead and not redeliveries:
        raise _wrong("MaxRedeliverCount must be > 0.")
    modes = {"Durable": True, "NonDurable": False}
    kinds = {one.name: one for one in SubType}
    starts = {one.name: one for one in c.InitialPosition}
    kind = _choice(query, "subscriptionType", kinds, "Exclusive")
    counted = kind in (SubType.Shared, SubType.Key_Shared)  # the other types count no redeliveries
    default = f"{topic}-{subscription}-DLQ" if dead and counted else ""
    if default and not query.get("deadLetterTopic") and "/" in subscription:
        raise _wrong(f"deadLetterTopic is needed: the subscription {subscription[:80]!r} has a slash in its name")
    dead_topic = _dead_letter_topic(query.get("deadLetterTopic") or default)
    delay = _number(query, "negativeAckRedeliveryDelay", _NACK_MS, 0, "redeliveryDelay needs to be >= 0")
    return ConsumingOptions(
        queue=_queue(query),
        pull=_flag(query, "pullMode"),
        ack_timeout_ms=timeout,
        max_redeliveries=redeliveries,
        dead_letter_topic=dead_topic if counted else None,
        subscribe={
            "consumer_type": kind,
            "durable": _choice(query, "subscriptionMode", modes, "Durable"),
            "initial_position": _choice(query, "subscriptionInitialPosition", starts, "Latest"),
            "consumer_name": query.get("consumerName") or None,
            "priority_level": _number(query, "priorityLevel", 0) or None,
            "negative_ack_redelivery_delay_ms": max(delay, _NACK_MIN_MS),
            "crypto_failure_action": _crypto(query),
        },
    )


def _dead_letter_topic(given: str) -> TopicName | None:
    try:
        return TopicName.parse(given) if given else None
    except InvalidTopicNameError as error:
        raise _wrong(f"deadLetterTopic {given[:80]!r}: {error}") from None


def topics_pattern(text: str) -> re.Pattern[str]:
    """A pattern of topics that any name is matched with in no time. Raises InvalidValueError about others."""
    if len(text) > _PATTERN_MAX or not _PATTERN.fullmatch(text) or len(_REPEATED.findall(text)) > _REPEATED_MAX:
        raise _wrong(f"topicsPattern: letters, digits, . and \\. and up to {_REPEATED_MAX} of .* and .+ are taken here")
    return re.compile(text)


def _crypto(query: Query) -> ConsumerCryptoFailureAction:
    return _choice(query, "cryptoFailureAction", {one.name: one for one in ConsumerCryptoFailureAction}, "FAIL")


def _queue(query: Query) -> int:
    return min(_number(query, "receiverQueueSize", QUEUE_MAX) or 1, QUEUE_MAX)


@dataclass(frozen=True, slots=True)
class ReadingOptions:
    """How a reader's socket delivers."""

    queue: int
    start: MessageId
    name: str | None
    crypto: ConsumerCryptoFailureAction


def reading_options(query: Query) -> ReadingOptions:
    """The options of a reader. Raises InvalidValueError."""
    given = query.get("messageId") or "latest"
    named = {"earliest": MessageId.earliest, "latest": MessageId.latest}
    try:
        start = named[given] if given in named else message_id(given)
    except InvalidValueError as error:
        raise _wrong(f"messageId: {error}") from None
    return ReadingOptions(_queue(query), start, query.get("readerName") or None, _crypto(query))


def message_id(text: str) -> MessageId:
    """The id that a client sends back. Raises InvalidValueError."""
    try:
        found = MessageId.deserialize(base64.b64decode(text, validate=True))
    except (binascii.Error, ProtocolError, ValueError):
        raise InvalidValueError(f"{text[:80]!r} is no message id") from None
    size = found.batch_size
    # what is left of a batch is kept as a bit for each of its messages
    if size > _BATCH_MAX or 0 < size <= found.batch_index():
        raise InvalidValueError(
            f"{text[:80]!r}: message {found.batch_index()} of a batch of {size} cannot be (up to {_BATCH_MAX})"
        )
    return found
