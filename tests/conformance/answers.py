"""What a broker said, as JSON in which nothing depends on the run.

Left out or replaced by a word in angle brackets: ledger ids (numbered `L0`, `L1` in order of appearance), times,
addresses, generated names, version texts. -1, which the wire shows as the largest unsigned number, is written as -1.
Everything else is kept as it was, error texts included. A field that is absent on the wire is absent here too, because
clients can see the difference.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

# JSON as it comes from a parser or goes to one: the one place where the type says nothing.
Json = Any

UNSIGNED_MINUS_ONE = 2**64 - 1
LATEST = 2**63 - 1
GENERATED_NAME = re.compile(r"\bstandalone-\d+-\d+\b")
ADDRESS = re.compile(r"\b(?:127\.0\.0\.1|localhost)(:\d+)?\b")
# What Java prints of an object; another broker has no reason to print the same.
JAVA_OBJECT = re.compile(r"\b(Consumer|Producer|PersistentTopic)\{.*\}")
WORDS: dict[str, str] = {"server_version": "<version>"}


def text(value: str) -> str:
    value = GENERATED_NAME.sub("<generated>", value)
    value = JAVA_OBJECT.sub(r"\1{...}", value)
    return ADDRESS.sub("<address>", value)


class Normaliser:
    """Turns messages into JSON; remembers the ledger ids that it met, so one is kept for each probe."""

    def __init__(self) -> None:
        self._ledgers: dict[int, str] = {}

    def ledger(self, number: int) -> str | int:
        if number in (UNSIGNED_MINUS_ONE, -1):
            return -1
        if number == LATEST:
            return "latest"
        return self._ledgers.setdefault(number, f"L{len(self._ledgers)}")

    def position(self, message_id: Json) -> str:
        """`ledger:entry`, with the batch index or partition where there is one."""
        entry = message_id.entryId
        place = f"{self.ledger(message_id.ledgerId)}:{-1 if entry == UNSIGNED_MINUS_ONE else entry}"
        if message_id.batch_index >= 0:
            place += f" batch_index {message_id.batch_index}"
        if message_id.partition >= 0:
            place += f" partition {message_id.partition}"
        return place

    def value(self, field: FieldDescriptor, value: Json) -> Json:
        if field.name in WORDS:
            return WORDS[field.name]
        if field.message_type is not None:
            if field.message_type.name == "MessageIdData":
                return self.position(value)
            return self.message(value)
        if field.enum_type is not None:
            return field.enum_type.values_by_number[value].name
        if isinstance(value, bytes):
            return value.hex()
        if isinstance(value, str):
            return text(value)
        if value == UNSIGNED_MINUS_ONE:
            return -1
        return value

    def message(self, message: Message) -> dict[str, Json]:
        """Present fields by name."""
        said: dict[str, Json] = {}
        for field, value in message.ListFields():
            if field.name == "highest_sequence_id" and value in (0, UNSIGNED_MINUS_ONE):
                # what Apache Pulsar echoes for a SEND without one: 0 from a new object, -1 from a recycled one
                said[field.name] = "<none>"
                continue
            said[field.name] = [self.value(field, v) for v in value] if field.is_repeated else self.value(field, value)
        return dict(sorted(said.items()))


def shape(value: Json) -> Json:
    """The names in a JSON document and the kinds of its values, in place of the values."""
    if isinstance(value, dict):
        return {key: shape(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return type(value).__name__


def select(value: Json, names: Iterable[str]) -> dict[str, Json]:
    """The named members of an object; a missing one differs from a null."""
    return {name: value.get(name, "<absent>") for name in names}


def tried(action: Callable[[], Json]) -> Json:
    """What ``action`` gives, or the name of the exception class it raises: for the official client's verdicts."""
    try:
        given = action()
    except Exception as error:
        return f"raises {type(error).__name__}"
    return given if isinstance(given, str | int | float | list | dict | None) else "succeeds"
