"""A message as ``pulsar-client`` prints it, which scripts read, or as a line of JSON."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from magnetar.aio import Message

BOUNDARY = "----- got message -----"


def printed(message: Message[Any], *, as_hex: bool, metadata: bool) -> str:
    """Return the line after `BOUNDARY`; ``metadata`` adds what --print-metadata asks for.

    Values are bytes, or with -st auto_consume `WrittenValue`. Raises SchemaError for one that cannot be read.
    """
    key = message.partition_key() if message.has_key() else "null"
    properties = ", ".join(f"{name}={value}" for name, value in message.properties().items())
    content = "null" if message.has_null_value() else _content(message, as_hex)
    text = (
        f"publishTime:[{message.publish_timestamp()}], eventTime:[{message.event_timestamp()}], "
        f"key:[{key}], properties:[{properties}], content:{content}"
    )
    return f"{text}, {_metadata(message)}" if metadata else text


def _content(message: Message[Any], as_hex: bool) -> str:
    value = message.value()
    if not isinstance(value, bytes):
        return "null" if value is None else str(value.printed(as_hex=as_hex))
    return hex_dump(value) if as_hex else value.decode(errors="replace")


def _metadata(message: Message[Any]) -> str:
    place = message.message_id()
    event = datetime.fromtimestamp(message.event_timestamp() / 1000, UTC)
    moment = event.strftime("%Y-%m-%dT%H:%M:%S") + (f".{event.microsecond // 1000:03}" if event.microsecond else "")
    where = f"{place.ledger_id()}:{place.entry_id()}:{place.partition()}"
    if place.batch_index() >= 0:
        where += f":{place.batch_index()}"
    version = (message.schema_version() or b"").hex()
    return (
        f"event-time:{moment}Z, message-id:{where}, producer-name:{message.producer_name()}, "
        f"sequence-id:{message.sequence_id()}, replicated-from:{message.replicated_from() or 'null'}, "
        f"redelivery-count:{message.redelivery_count()}, "
        f"ordering-key:{message.ordering_key()}, schema-version:{version}"
    )


def hex_dump(data: bytes) -> str:
    """Return lines of 16 bytes: offset, hexadecimal, text."""
    lines = []
    for at in range(0, len(data), 16):
        row = data[at : at + 16]
        numbers = " ".join(f"{byte:02X}" for byte in row).ljust(47)
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        lines.append(f"{at:08X} {numbers} {text}")
    return "\n".join(lines) + "\n"


def as_json(message: Message[Any]) -> str:
    """Return one line of JSON; a payload or key that is no text is in base64 under another name."""
    place = message.message_id()
    found: dict[str, object] = {
        "messageId": f"{place.ledger_id()}:{place.entry_id()}:{place.partition()}:{place.batch_index()}",
        "topic": message.topic_name(),
        "publishTime": message.publish_timestamp(),
        "eventTime": message.event_timestamp(),
        "key": message.partition_key() if message.has_key() else None,
        "properties": message.properties(),
        "producerName": message.producer_name(),
        "sequenceId": message.sequence_id(),
        "redeliveryCount": message.redelivery_count(),
    }
    if message.has_null_value():
        found["content"] = None
    elif not isinstance(value := message.value(), bytes):
        found["content"] = None if value is None else value.plain()
    else:
        try:
            found["content"] = message.data().decode()
        except UnicodeDecodeError:
            found["contentBase64"] = base64.b64encode(message.data()).decode()
    return json.dumps(found, ensure_ascii=False)
