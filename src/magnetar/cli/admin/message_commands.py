"""Messages and schemas: printing messages that the broker sends as bytes, and schemas of files."""

from __future__ import annotations

import base64
import json
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from magnetar.cli.admin.arguments import UsageError
from magnetar.cli.admin.call import Call
from magnetar.cli.admin.request import CommandRequest, query_of, topic_name, topic_path
from magnetar.runtime.files.pipe import read_without_waiting, why_unread
from magnetar.runtime.harmless_text import one_line

if TYPE_CHECKING:
    from magnetar.client.rest import RestAnswer

_FILE_BYTES_MAX: Final = 16 << 20
_PROPERTY: Final = "x-pulsar-property-"
_PROPERTIES: Final = "x-pulsar-property"
_LINE: Final = "-" * 73


def peek_messages(call: Call) -> None:
    """Show the next messages of a subscription, until there are no more; what is left out does not count."""
    from magnetar.client.rest import RestRefusedError

    shown: list[dict[str, Any]] = []
    found, position, wanted = 0, 0, call.number("count") or 1
    while found < wanted:
        position += 1
        try:
            answer = call.exchange(CommandRequest("GET", f"{call.subscription}/position/{position}"))
        except RestRefusedError as refused:
            if position > 1 and refused.http_status == 404:
                break
            raise
        if _left_out(call, answer):
            continue
        found += 1
        _print_message(call, answer, found, shown)
    if call.printer.shape == "json":
        call.show("json", shown)


def _left_out(call: Call, answer: RestAnswer) -> bool:
    """Whether it is a marker, or a message of a transaction that is not committed, and such ones were not asked for."""
    headers = answer.headers
    if "x-pulsar-marker-type" in headers and not call.switch("show-server-marker"):
        return True
    uncommitted = any(headers.get(f"x-pulsar-txn-{word}", "").lower() == "true" for word in ("aborted", "uncommitted"))
    return uncommitted and call.text("transaction-isolation-level") != "READ_UNCOMMITTED"


def examine_message(call: Call) -> None:
    """Show the message at a place, counted from the first or the last."""
    query = {"initialPosition": call.text("initialPosition"), "messagePosition": call.number("messagePosition")}
    _show_one(call, CommandRequest("GET", f"{call.topic}/examinemessage", query_of(query)))


def message_by_id(call: Call) -> None:
    """Show the message of an id."""
    path = f"{call.topic}/ledger/{call.number('ledgerId')}/entry/{call.number('entryId')}"
    _show_one(call, CommandRequest("GET", path))


def _show_one(call: Call, request: CommandRequest) -> None:
    shown: list[dict[str, Any]] = []
    _print_message(call, call.exchange(request), 1, shown)
    if call.printer.shape == "json":
        call.show("json", shown[0])


def _print_message(call: Call, answer: RestAnswer, position: int, shown: list[dict[str, Any]]) -> None:
    properties = _properties(answer)
    message_id = answer.headers.get("x-pulsar-message-id", "")
    if call.printer.shape == "json":
        text = answer.content.decode(errors="replace")
        shown.append({"messageId": message_id, "properties": properties, "payload": text})
        return
    if call.command.group == "persistent" and call.command.name == "get-message-by-id":
        call.say(_dump(answer.content))  # as the tool has it
        return
    if position > 1:
        call.say(f"{_LINE}\n")
    call.say(f"Message ID: {message_id}")
    call.say(f"Publish time: {_millis(answer.headers.get('x-pulsar-publish-time'))}")
    call.say(f"Event time: {_millis(answer.headers.get('x-pulsar-event-time'))}")
    deliver = answer.headers.get("x-pulsar-deliver-at-time")
    if deliver and _millis(deliver):
        call.say(f"Deliver at time: {_millis(deliver)}")
    if call.command.name == "get-message-by-id":
        call.say("Redelivery count: 0")
    if properties:
        call.say("Properties:")
        for name, value in properties.items():
            call.say(one_line(f"{name}    {value}"))
    call.say(_dump(answer.content))


def _properties(answer: RestAnswer) -> dict[str, str]:
    """Return a message's properties: of one header as JSON, from brokers before 2.11 a header for each."""
    try:
        found = json.loads(answer.headers.get(_PROPERTIES, "{}"))
    except ValueError:
        found = {}
    each = {name.removeprefix(_PROPERTY): value for name, value in answer.headers.items() if name.startswith(_PROPERTY)}
    return {**each, **({str(name): str(value) for name, value in found.items()} if isinstance(found, dict) else {})}


def _millis(text: str | None) -> int:
    """Return the milliseconds of a time in a header; 0 if it has none."""
    if not text or text.isdecimal():
        return int(text or 0)
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except ValueError:
        return 0


def _dump(content: bytes) -> str:
    """Return bytes with their offsets, hexadecimal and readable."""
    lines = ["         +-------------------------------------------------+",
             "         |  0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f |",
             "+--------+-------------------------------------------------+----------------+"]  # fmt: skip
    for start in range(0, len(content), 16):
        part = content[start : start + 16]
        digits = " ".join(f"{byte:02x}" for byte in part)
        text = "".join(chr(byte) if 32 < byte < 127 else "." if byte != 32 else " " for byte in part)
        lines.append(f"|{start:08x}| {digits:<47} |{text:<16}|")
    lines.append("+--------+-------------------------------------------------+----------------+")
    return "\n".join(lines)


def _schema_path(call: Call) -> str:
    return f"/admin/v2/schemas/{topic_path(call.values['topic']).partition('/')[2]}"


def get_schema(call: Call) -> None:
    """Show the newest schema of a topic, one version, or all."""
    version, name = call.number("version"), topic_name(call.values["topic"]).local_name
    if call.switch("all-version") and version is not None:
        call.usage("give either --version or --all-version")
    if call.switch("all-version"):
        found = (call.get(f"{_schema_path(call)}/schemas") or {}).get("getSchemaResponses") or []
        return call.show("lines", [_plain_schema(one, name) for one in found])
    path = f"{_schema_path(call)}/schema" + ("" if version is None else f"/{version}")
    found = call.get(path) or {}
    if version is not None:
        return call.show("gson-pretty", _schema_info(found, name))
    return call.show("gson-pretty", {"version": found.get("version"), "schemaInfo": _schema_info(found, name)})


def _plain_schema(found: dict[str, Any], name: str) -> dict[str, Any]:
    text = str(found.get("data") or "")
    return {
        "name": found.get("name") or name, "schema": base64.b64encode(text.encode()).decode(),
        "type": found.get("type"), "timestamp": found.get("timestamp", 0),
        "properties": found.get("properties") or {}, "schemaDefinition": text,
    }  # fmt: skip


def _schema_info(found: dict[str, Any], name: str) -> dict[str, Any]:
    text = found.get("data") or ""
    try:
        schema: Any = json.loads(text) if text else ""
    except ValueError:
        schema = text
    info = {"name": found.get("name") or name, "schema": schema, "type": found.get("type")}
    return {**info, "timestamp": found.get("timestamp", 0), "properties": found.get("properties") or {}}


def upload_schema(call: Call) -> None:
    """Upload the schema of a file."""
    call.send("POST", f"{_schema_path(call)}/schema", body=_schema_file(call.text("filename")))


def schema_compatibility(call: Call) -> None:
    """Test whether the schema of a file may follow those that are there."""
    body = _schema_file(call.text("filename"))
    call.show("json", call.send("POST", f"{_schema_path(call)}/compatibility", body=body))


def _schema_file(name: str) -> dict[str, Any]:
    try:
        content = read_without_waiting(name, _FILE_BYTES_MAX + 1)
        if len(content) > _FILE_BYTES_MAX:
            raise UsageError(f"{name} has more than {_FILE_BYTES_MAX} bytes, which no schema has")
        found = json.loads(content)
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{name} cannot be read as JSON: {why_unread(error)}") from None
    if not isinstance(found, dict) or not isinstance(found.get("type"), str):
        raise UsageError(f'{name}: write {{"type": "AVRO", "schema": "...", "properties": {{}}}}')
    schema = found.get("schema", "")
    return {"type": found["type"], "schema": schema, "properties": found.get("properties") or {}}
