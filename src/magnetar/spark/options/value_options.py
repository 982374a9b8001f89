"""The options that say how values are read and written as typed columns."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Final, NamedTuple

from magnetar.model.errors import InvalidValueError
from magnetar.model.schemas import SchemaDefinition, SchemaType
from magnetar.runtime.files.pipe import read_without_waiting, why_unread
from magnetar.schema_definitions import protobuf_native

PRIMITIVES: Final = {
    kind.name.lower(): kind
    for kind in (
        SchemaType.BOOLEAN,
        SchemaType.INT8,
        SchemaType.INT16,
        SchemaType.INT32,
        SchemaType.INT64,
        SchemaType.FLOAT,
        SchemaType.DOUBLE,
        SchemaType.DATE,
        SchemaType.TIME,
        SchemaType.TIMESTAMP,
        SchemaType.INSTANT,
        SchemaType.LOCAL_DATE,
        SchemaType.LOCAL_TIME,
        SchemaType.LOCAL_DATE_TIME,
    )
}
STRUCTURED: Final = ("avro", "json", "protobuf")
KINDS: Final = ("binary", "string", "auto", *STRUCTURED, *PRIMITIVES)
"""What the option ``value`` can be."""
WRITTEN_KINDS: Final = ("string", "bytes", "auto", "keyvalue", *STRUCTURED, *PRIMITIVES)
"""What the sink's option ``schema`` can be."""


HALF_KINDS: Final = ("avro", "json", "string", "bytes", *PRIMITIVES)
"""What either half of a written KEY_VALUE can be."""


class PairOptions(NamedTuple):
    """How a sink writes KEY_VALUE values."""

    separated: bool = False
    """The key is the message's, and not in its value."""
    key: str | None = None
    """One of `HALF_KINDS`; None: as the column's type says."""
    value: str | None = None
    key_schema: str | None = None
    """A schema's text, or a path."""
    value_schema: str | None = None


@dataclass(frozen=True, slots=True)
class ValueOptions:
    """How a source reads values. `value_schemas.resolved` puts in the definition."""

    kind: str = "binary"
    version: int | None = None
    """None: the latest."""
    given: str | None = None
    """A schema's text, or a path."""
    message: str | None = None
    on_new_schema: str = "fail"
    on_error: str = "fail"
    definition: SchemaDefinition | None = None
    """The reader's."""
    label: str = ""
    """What it is called in errors."""

    def check(self) -> None:
        """Check that the options go together. Raises InvalidValueError."""
        structured = self.kind in (*STRUCTURED, "auto")
        if self.version is not None and not structured:
            raise InvalidValueError(f"option 'schemaVersion' has no meaning with value={self.kind}")
        if self.on_new_schema != "fail" and not structured:
            raise InvalidValueError(
                f"option 'onNewSchema' has no meaning with value={self.kind}, which has no versions"
            )
        if self.on_error != "fail" and self.kind == "binary":
            raise InvalidValueError("option 'onDecodeError' has no meaning with value=binary, which takes all bytes")
        if self.given is not None and self.kind not in STRUCTURED:
            raise InvalidValueError(
                f"option 'valueSchema' has no meaning with value={self.kind}; say whether it is value=avro, json or "
                "protobuf"
            )
        if self.given is not None and self.version is not None:
            raise InvalidValueError("give either the option 'valueSchema' or 'schemaVersion'")
        if self.kind == "protobuf" and self.given is not None and self.message is None:
            raise InvalidValueError("option 'valueSchema' has many messages; name one with 'valueMessage'")
        if self.message is not None and self.kind != "protobuf":
            raise InvalidValueError("option 'valueMessage' has a meaning with value=protobuf only")


def given_definition(kind: str, given: str, message: str | None) -> SchemaDefinition:
    """Return the schema that ``valueSchema`` gives, and ``valueMessage`` with kind protobuf.

    Raises InvalidValueError.
    """
    if kind != "protobuf":
        return SchemaDefinition(SchemaType.AVRO if kind == "avro" else SchemaType.JSON, schema_text(given).encode())
    assert message is not None, "the options' checks have seen to it"
    try:
        files = base64.b64decode(given, validate=True)
    except binascii.Error:
        files = schema_bytes(given)
    return SchemaDefinition(SchemaType.PROTOBUF_NATIVE, protobuf_native.definition(files, message))


def schema_text(given: str, title: str = "valueSchema") -> str:
    """Return the text in the option of that title, or in the file that it names. Raises InvalidValueError."""
    return schema_bytes(given, title).decode(errors="replace")


def schema_bytes(given: str, title: str = "valueSchema") -> bytes:
    """Return the bytes in the option of that title, or in the file that it names."""
    if given.lstrip()[:1] in ("{", "[", '"'):
        return given.encode()
    try:
        return read_without_waiting(given)
    except OSError as error:
        raise InvalidValueError(
            f"option {title!r} is {given[:80]!r}, which is neither JSON nor a file that can be read here: "
            f"{why_unread(error)}"
        ) from None
