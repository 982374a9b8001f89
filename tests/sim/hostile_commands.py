"""Every wire command with boundary values in every field, made from the descriptors of the protocol itself."""

from __future__ import annotations

import random
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from magnetar.protocol.frames import with_checksum
from magnetar.protocol.generated import pulsar_pb2 as pb

INTEGERS: Final = (
    0, 1, -1, 2, 63, 64, 65, 1 << 20, (1 << 31) - 1, 1 << 31, -(1 << 31), (1 << 32) - 1, 1 << 32, (1 << 63) - 1,
    -(1 << 63), 1 << 63, (1 << 64) - 1,
)  # fmt: skip
TEXTS: Final = (
    "",
    "a",
    "x" * 5000,
    "\0",
    "\n\r\t",
    "ä" * 300,
    "(a+)+$",
    ".*",
    "../..",
    "__transaction_buffer_snapshot",
)
_LIMITS: Final = {
    FieldDescriptor.TYPE_INT32: (-(1 << 31), (1 << 31) - 1),
    FieldDescriptor.TYPE_INT64: (-(1 << 63), (1 << 63) - 1),
    FieldDescriptor.TYPE_UINT32: (0, (1 << 32) - 1),
    FieldDescriptor.TYPE_UINT64: (0, (1 << 64) - 1),
}
COMMANDS: Final = sorted(field.name for field in pb.BaseCommand.DESCRIPTOR.fields if field.message_type is not None)
"""All of them, also those that only brokers send."""


class Forge:
    """``words``: values that mean something, by the end of a field's name (lower case, without underscores); one
    alone is the only one."""

    def __init__(self, rng: random.Random, words: dict[str, list[Any]]) -> None:
        self._rng = rng
        self._words = words

    def command(self, name: str, base: Any = None) -> bytes:
        """A frame; with ``base``, a message of that type, its fields stand in as many places as chance wants."""
        message: Any = pb.BaseCommand()
        field: Any = pb.BaseCommand.DESCRIPTOR.fields_by_name[name]
        message.type = field.number
        inner = getattr(message, name)
        inner.SetInParent()
        if base is not None:
            inner.CopyFrom(base)
            fields = list(field.message_type.fields)
            for one in self._rng.sample(fields, min(len(fields), 2)):
                self._fill_field(inner, one, depth=0)
        else:
            self._fill(inner, field.message_type, depth=0)
        body: bytes = message.SerializePartialToString()
        return len(body + b"    ").to_bytes(4, "big") + len(body).to_bytes(4, "big") + body

    def with_entry(self, frame: bytes, entry: bytes) -> bytes:
        """A SEND with what follows it."""
        rest = frame[4:] + entry
        return len(rest).to_bytes(4, "big") + rest

    def entry(self) -> bytes:
        """Return an entry with a right checksum and random contents."""
        rng = self._rng
        metadata = pb.MessageMetadata(producer_name="evil", sequence_id=1, publish_time=1)
        for field in rng.sample(list(metadata.DESCRIPTOR.fields), rng.randint(0, 4)):
            self._fill_field(metadata, field, depth=1)
        head = metadata.SerializePartialToString()
        if rng.random() < 0.2:
            head = rng.randbytes(rng.randint(0, 30))
        return with_checksum(len(head).to_bytes(4, "big") + head + rng.randbytes(rng.choice((0, 1, 20, 3000))))

    def _fill(self, message: Any, descriptor: Descriptor, depth: int) -> None:
        for field in descriptor.fields:
            if field.is_required or self._rng.random() < 0.4:
                self._fill_field(message, field, depth)

    def _fill_field(self, message: Any, field: Any, depth: int) -> None:
        rng = self._rng
        if field.is_repeated:
            del getattr(message, field.name)[:]
            scalar = field.message_type is None
            for _ in range(rng.choice((0, 1, 2, 5, 200 if scalar or depth == 0 else 3))):
                if scalar:
                    getattr(message, field.name).append(self._value(field))
                elif depth < 3:
                    self._fill(getattr(message, field.name).add(), field.message_type, depth + 1)
        elif field.message_type is not None:
            if depth < 3:
                getattr(message, field.name).SetInParent()
                self._fill(getattr(message, field.name), field.message_type, depth + 1)
        else:
            setattr(message, field.name, self._value(field))

    def _value(self, field: FieldDescriptor) -> Any:
        rng = self._rng
        plain = field.name.lower().replace("_", "")
        known = next((values for end, values in self._words.items() if plain.endswith(end)), [])
        wanted = str if field.type == FieldDescriptor.TYPE_STRING else int
        known = [value for value in known if isinstance(value, wanted)]
        low, high = _LIMITS.get(field.type, (0, 0))
        if field.type in _LIMITS:
            known = [value for value in known if low <= value <= high]
        if known and (rng.random() < 0.75 or len(known) == 1):
            return rng.choice(known)
        if field.enum_type is not None:
            return rng.choice(list(field.enum_type.values)).number
        if field.type in _LIMITS:
            return rng.choice([value for value in INTEGERS if low <= value <= high])
        if field.type == FieldDescriptor.TYPE_BOOL:
            return rng.random() < 0.5
        if field.type == FieldDescriptor.TYPE_STRING:
            return rng.choice(TEXTS)
        if field.type == FieldDescriptor.TYPE_BYTES:
            return rng.choice((b"", b"\xff" * 9, rng.randbytes(2000)))
        return 0.5
