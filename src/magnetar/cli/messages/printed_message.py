"""A message as ``pulsar-client`` prints it, which scripts read, or as a line of JSON."""

from __future__ import annotations

import base64
import json
from datetime import date
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from magnetar.aio import Message

BOUNDARY = "----- got message -----"
_DAYS_TO_1970: Final = 719_162
_DAYS_OF_400_YEARS: Final = 146_097


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
    where = f"{place.ledger_id()}:{place.entry_id()}:{place.partition()}"
    if place.batch_index() >= 0:
        where += f":{place.batch_index()}"
    version = (message.schema_version() or b"").hex()
    return (
        f"event-time:{_instant(message.event_timestamp())}, message-id:{where}, "
        f"producer-name:{message.producer_name()}, sequence-id:{message.sequence_id()}, "
        f"replicated-from:{message.replicated_from() or 'null'}, "
        f"redelivery-count:{message.redelivery_count()}, "
        f"ordering-key:{message.ordering_key()}, schema-version:{version}"
    )


def _instant(ms: int) -> str:
    """Return milliseconds since 1970 as Java has them, who knows far later years than Python."""
    days, rest = divmod(ms, 86_400_000)
    cycles, day = divmod(days + _DAYS_TO_1970, _DAYS_OF_400_YEARS)
    day_of_cycle = date.fromordinal(day + 1)
    year = day_of_cycle.year + 400 * cycles
    sign = "+" if year > 9999 else "-" if year < 0 else ""
    seconds, fraction = divmod(rest, 1000)
    return (
        f"{sign}{abs(year):04}-{day_of_cycle:%m-%d}T{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        + (f".{fraction:03}Z" if fraction else "Z")
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
