"""JSON of the frames, in Apache Pulsar's shapes."""

from __future__ import annotations

import base64
import binascii
import datetime
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from magnetar.admin.values import coercion
from magnetar.admin.values.json_document import read_document
from magnetar.client.encryption.encryption_context import EncryptionContext
from magnetar.client.machines.message import Message
from magnetar.client.machines.message_id import MessageId
from magnetar.model.errors import InvalidValueError, MagnetarError
from magnetar.model.policies import Json, JsonObject

_EPOCH: Final = datetime.datetime(1970, 1, 1)
_CYCLE_MS: Final = 146_097 * 86_400_000
"""400 years."""
_VALUES_MAX: Final = 20_000
"""Values of one frame; above it a frame would keep the event loop for long."""
NOT_JSON, WRONG_PAYLOAD, FAILED = 3, 7, 8
"""Pulsar's numbers of what can be wrong with a message that is sent."""


class FrameError(Exception):
    """A message that cannot be sent."""

    def __init__(self, code: int, reason: str, context: str | None) -> None:
        super().__init__(reason)
        self.code = code
        self.context = context


@dataclass(frozen=True, slots=True)
class SentMessage:
    """A message that a producer's socket was given."""

    payload: bytes
    context: str | None
    key: str | None
    properties: Mapping[str, str]
    event_time: int | None
    sequence_id: int | None
    deliver_at: int | None
    deliver_after_ms: int | None
    replication_clusters: tuple[str, ...]
    disable_replication: bool


def sent_message(text: str) -> SentMessage:
    """What a frame of a producer says. Raises FrameError."""
    try:
        given = read_object(text)
        context = None if given.get("context") is None else coercion.text(given["context"])
        key = None if given.get("key") is None else coercion.text(given["key"])
        properties = coercion.texts(given.get("properties"), "properties as a JSON object of texts")
        at, after = _number(given, "deliverAt"), _number(given, "deliverAfterMs")
        sequence, clusters = _number(given, "sequenceId"), _names(given.get("replicationClusters"))
        alone = coercion.flag(given.get("disableReplication") or False)
    except MagnetarError as error:
        raise FrameError(NOT_JSON, str(error), None) from None
    if after is not None and after > coercion.DELAY_MS_MAX:
        raise FrameError(WRONG_PAYLOAD, f"deliverAfterMs: {after} is above {coercion.DELAY_MS_MAX}", context)
    if given.get("encryptionContext") is not None:
        raise FrameError(WRONG_PAYLOAD, "encryptionContext: encrypted messages are not taken here", context)
    return SentMessage(
        _payload(given.get("payload"), context), context, key, properties, _event_time(given, context), sequence, at,
        after, clusters, alone,
    )  # fmt: skip


def read_object(text: str) -> JsonObject:
    """A frame as a JSON object. Raises InvalidValueError."""
    try:
        found = read_document(text.encode(), _VALUES_MAX)
    except UnicodeEncodeError:
        raise InvalidValueError("the frame is not UTF-8") from None
    if not isinstance(found, dict):
        raise InvalidValueError("expected a JSON object")
    return found


def _payload(given: Json, context: str | None) -> bytes:
    if not isinstance(given, str):
        raise FrameError(WRONG_PAYLOAD, 'expected "payload" as a text in base64', context)
    try:
        return base64.b64decode(given + "=" * (-len(given) % 4), validate=True)
    except (binascii.Error, ValueError) as error:
        raise FrameError(WRONG_PAYLOAD, f"Invalid Base64 message-payload error={error}", context) from None


def _event_time(given: JsonObject, context: str | None) -> int | None:
    text = given.get("eventTime")
    if text is None:
        return None
    try:
        at = datetime.datetime.fromisoformat(str(text))
        if at.tzinfo is None or not isinstance(text, str):
            raise ValueError(text)
        return int(at.timestamp() * 1000)
    except (ValueError, OverflowError):
        raise FrameError(WRONG_PAYLOAD, f"Text '{str(text)[:80]}' could not be parsed at index 0", context) from None


def _number(given: JsonObject, name: str) -> int | None:
    value = given.get(name)
    return None if value is None else max(coercion.number(value, f"a whole number as {name}"), 0) or None


def _names(given: Json) -> tuple[str, ...]:
    if given is None:
        return ()
    if not isinstance(given, list):
        raise InvalidValueError("expected replicationClusters as a list of texts")
    return tuple(coercion.text(one) for one in given)


def id_text(message_id: MessageId) -> str:
    """An id as clients get it and send it back."""
    data = message_id.serialize()
    # Java's client writes the size of the batch for every message
    return base64.b64encode(data if message_id.batch_size else data + b"\x30\x00").decode()


def stored(message_id: MessageId, context: str | None) -> str:
    """The answer to a message that is stored."""
    return _text({"result": "ok", "messageId": id_text(message_id), **_context(context), **_NO_ERROR})


def not_stored(code: int, reason: str, context: str | None) -> str:
    """The answer to one that is not."""
    return _text({"result": f"send-error:{code}", "errorMsg": reason, **_context(context), **_NO_ERROR})


_NO_ERROR: JsonObject = {"errorCode": 0, "schemaVersion": 0}


def _context(context: str | None) -> JsonObject:
    return {} if context is None else {"context": context}


def delivered(message: Message, identity: str) -> str:
    """A message for a consumer or reader; ``identity`` is its id as a text."""
    shown: JsonObject = {
        "messageId": identity,
        "payload": base64.b64encode(message.data()).decode(),
        "properties": {**message.properties()},
        "publishTime": _instant(message.publish_timestamp()),
        "redeliveryCount": message.redelivery_count(),
    }
    if message.event_timestamp():
        shown["eventTime"] = _instant(message.event_timestamp())
    sealed = message.encryption_context()
    if sealed is not None:
        shown["encryptionContext"] = _sealed(sealed)
    if message.has_key():
        shown["key"] = message.partition_key()
    return _text(shown)


def _sealed(found: EncryptionContext) -> JsonObject:
    """What a client needs to decrypt a message itself, as Apache Pulsar writes it."""
    keys: JsonObject = {
        one.key: {"keyValue": base64.b64encode(one.value).decode(), "metadata": dict(one.metadata)}
        for one in found.keys()  # noqa: SIM118 - no dictionary
    }
    return {
        "keys": keys,
        "param": base64.b64encode(found.param()).decode(),
        "algorithm": found.algorithm(),
        "compressionType": found.compression_type().name,
        "uncompressedMessageSize": found.uncompressed_message_size(),
        "batchSize": None if found.batch_size() < 0 else found.batch_size(),
        "encrypted": found.is_decryption_failed(),
    }


def end_of_topic(reached: bool) -> str:
    """The answer to ``isEndOfTopic``."""
    return _text({"endOfTopic": reached})


def _instant(ms: int) -> str:
    """A time as Java writes it, which has a plus sign before years of more than four digits."""
    cycles, rest = divmod(ms, _CYCLE_MS)  # the calendar repeats itself, and Python's ends with the year 9999
    at = (_EPOCH + datetime.timedelta(milliseconds=rest)).isoformat(timespec="milliseconds")
    year = int(at[:4]) + 400 * cycles
    return f"{'+' if year > 9999 else ''}{year:04}{at[4:]}Z"


def _text(shown: JsonObject) -> str:
    return json.dumps(shown, ensure_ascii=False, separators=(",", ":"))
