"""Typed commands to protobuf and back, driven by the commands' own annotations.

At import every command class is paired with the message of its number in BaseCommand and every field with the field of
that message (same name but for case and underscores, or an entry of ``ALIASES``). What a field's annotation says
decides how it is read and written; ``commands/__init__`` says which values are left out. uint64 is signed here, as
Pulsar's longs are. ``txn`` stands for the two fields with the bits of a transaction id.

An entry is not part of BaseCommand: the decoder cuts it off before, ``encode`` appends it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sized
from enum import IntEnum
from types import NoneType
from typing import Any, Final, TypeVar, get_args, get_origin, get_type_hints

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message

from magnetar.model.errors import ProtocolError
from magnetar.model.ids import signed, unsigned
from magnetar.protocol import commands as c
from magnetar.protocol.commands.names import name_of
from magnetar.protocol.frames import BROKER_METADATA_MAGIC, command_frame
from magnetar.protocol.generated import pulsar_pb2 as pb

Read = Callable[[Any], Any]
Write = Callable[[Any, Any], None]
M = TypeVar("M", bound=Message)

NUMBERS: Final[dict[type[Any], int]] = {
    c.CommandConnect: 2,
    c.CommandConnected: 3,
    c.CommandSubscribe: 4,
    c.CommandProducer: 5,
    c.CommandSend: 6,
    c.CommandSendReceipt: 7,
    c.CommandSendError: 8,
    c.CommandMessage: 9,
    c.CommandAck: 10,
    c.CommandFlow: 11,
    c.CommandUnsubscribe: 12,
    c.CommandSuccess: 13,
    c.CommandError: 14,
    c.CommandCloseProducer: 15,
    c.CommandCloseConsumer: 16,
    c.CommandProducerSuccess: 17,
    c.CommandPing: 18,
    c.CommandPong: 19,
    c.CommandRedeliverUnacknowledgedMessages: 20,
    c.CommandPartitionedTopicMetadata: 21,
    c.CommandPartitionedTopicMetadataResponse: 22,
    c.CommandLookupTopic: 23,
    c.CommandLookupTopicResponse: 24,
    c.CommandConsumerStats: 25,
    c.CommandConsumerStatsResponse: 26,
    c.CommandReachedEndOfTopic: 27,
    c.CommandSeek: 28,
    c.CommandGetLastMessageId: 29,
    c.CommandGetLastMessageIdResponse: 30,
    c.CommandActiveConsumerChange: 31,
    c.CommandGetTopicsOfNamespace: 32,
    c.CommandGetTopicsOfNamespaceResponse: 33,
    c.CommandGetSchema: 34,
    c.CommandGetSchemaResponse: 35,
    c.CommandAuthChallenge: 36,
    c.CommandAuthResponse: 37,
    c.CommandAckResponse: 38,
    c.CommandGetOrCreateSchema: 39,
    c.CommandGetOrCreateSchemaResponse: 40,
    c.CommandNewTxn: 50,
    c.CommandNewTxnResponse: 51,
    c.CommandAddPartitionToTxn: 52,
    c.CommandAddPartitionToTxnResponse: 53,
    c.CommandAddSubscriptionToTxn: 54,
    c.CommandAddSubscriptionToTxnResponse: 55,
    c.CommandEndTxn: 56,
    c.CommandEndTxnResponse: 57,
    c.CommandEndTxnOnPartition: 58,
    c.CommandEndTxnOnPartitionResponse: 59,
    c.CommandEndTxnOnSubscription: 60,
    c.CommandEndTxnOnSubscriptionResponse: 61,
    c.CommandTcClientConnectRequest: 62,
    c.CommandTcClientConnectResponse: 63,
    c.CommandWatchTopicList: 64,
    c.CommandWatchTopicListSuccess: 65,
    c.CommandWatchTopicUpdate: 66,
    c.CommandWatchTopicListClose: 67,
    c.CommandTopicMigrated: 68,
}

ALIASES: Final = {
    "ledger": "ledgerid",
    "entry": "entryid",
    "firstchunk": "firstchunkmessageid",
    "messageids": "messageid",
    "permits": "messagepermits",
    "mode": "keysharedmode",
    "error": "errorcode",
    "message": "errormessage",
    "topics": "topic",
    "action": "txnaction",
    "subscriptions": "subscription",
    "lowwatermark": "txnidleastbitsoflowwatermark",
}
NOT_IN_PROTOBUF: Final = frozenset({"entry", "checksum_ok", "broker_metadata"})
"""Fields of Send and Message that stand outside BaseCommand."""

LEFT_OUT: Final[dict[type[Any], dict[str, Any]]] = {
    c.CommandSend: {"is_chunk": False, "marker": False},
    c.CommandMessage: {"redelivery_count": 0},
}
"""Values that are not written although the hot commands, being positional, have no defaults for them."""


class MessageCodec:
    """How one class travels: its fields in constructor order, each with a reader and a writer."""

    __slots__ = ("make", "readers", "writers")

    def __init__(self, make: type[Any], descriptor: Descriptor, skip: frozenset[str] = frozenset()) -> None:
        self.make = make
        self.readers: list[tuple[str, Read]] = []
        self.writers: list[tuple[str, Write]] = []
        by_name = {field.name.lower().replace("_", ""): field for field in descriptor.fields}
        defaults = _defaults(make) | LEFT_OUT.get(make, {})
        for name, hint in get_type_hints(make).items():
            if name in skip:
                continue
            if name == "txn":
                read, write = _txn_field(hint)
            else:
                plain = name.replace("_", "")
                field = by_name.get(plain) or by_name[ALIASES[plain]]
                read, write = _field(field, hint, defaults.get(name, ...))
            self.readers.append((name, read))
            self.writers.append((name, write))

    def read(self, message: Any) -> Any:
        return self.make(*[read(message) for _, read in self.readers])

    def write(self, message: Any, value: Any) -> None:
        for name, write in self.writers:
            write(message, getattr(value, name))


def _defaults(make: type[Any]) -> dict[str, Any]:
    if dataclasses.is_dataclass(make):
        return {f.name: f.default for f in dataclasses.fields(make) if f.default is not dataclasses.MISSING}
    found: dict[str, Any] = make._field_defaults
    return found


_shapes: dict[type[Any], MessageCodec] = {}


def _shape(make: type[Any], descriptor: Descriptor) -> MessageCodec:
    if make not in _shapes:
        # Message ids hold message ids: the shape must be known before its own fields are looked at.
        shape = _shapes[make] = MessageCodec.__new__(MessageCodec)
        shape.__init__(make, descriptor)  # type: ignore[misc]  # two steps, for a class that refers to itself
    return _shapes[make]


def _converters(field: FieldDescriptor, hint: Any) -> tuple[Read, Write]:
    """Return how one value of ``field``, whose typed form is ``hint``, is read from protobuf and written to it."""
    if field.message_type is not None:
        if field.message_type.name == "KeyValue":
            return _read_pair, _write_pair
        if field.message_type.name == "KeyLongValue":
            return _read_long_pair, _write_long_pair
        shape = _shape(hint, field.message_type)
        return shape.read, shape.write
    if isinstance(hint, type) and issubclass(hint, IntEnum):
        return hint, _refuse
    if field.type == FieldDescriptor.TYPE_UINT64:
        return signed, _refuse
    if field.type == FieldDescriptor.TYPE_STRING:
        return _text, _refuse
    return _same, _refuse


def _same(value: Any) -> Any:
    return value


def _text(value: str | bytes) -> str:
    """Return the text, or refuse the bytes that the parser gives for a proto2 string that is not UTF-8."""
    if not isinstance(value, str):
        raise ProtocolError(f"{value!r} is not UTF-8")
    return value


def _refuse(message: Any, value: Any) -> None:
    raise TypeError(f"{value!r} is not a message")  # scalars are assigned, never written into


def _read_pair(message: Any) -> tuple[str, str]:
    return _text(message.key), _text(message.value)


def _write_pair(message: Any, value: tuple[str, str]) -> None:
    message.key, message.value = value


def _read_long_pair(message: Any) -> tuple[str, int]:
    return _text(message.key), signed(message.value)


def _write_long_pair(message: Any, value: tuple[str, int]) -> None:
    message.key, message.value = value[0], unsigned(value[1])


def _field(field: FieldDescriptor, hint: Any, default: Any) -> tuple[Read, Write]:
    if get_origin(hint) is tuple:
        return _repeated(field, get_args(hint)[0])
    optional = NoneType in get_args(hint)
    inner = next(part for part in get_args(hint) if part is not NoneType) if optional else hint
    name = field.name
    convert, fill = _converters(field, inner)
    is_message = field.message_type is not None
    is_u64 = field.type == FieldDescriptor.TYPE_UINT64

    def read(message: Any) -> Any:
        return convert(getattr(message, name))

    def read_optional(message: Any) -> Any:
        return convert(getattr(message, name)) if message.HasField(name) else None

    def write(message: Any, value: Any) -> None:
        if value is None or (default is not ... and value == default):
            return
        if is_message:
            part = getattr(message, name)
            part.SetInParent()
            fill(part, value)
        else:
            setattr(message, name, unsigned(value) if is_u64 else value)

    return (read_optional if optional else read), write


def _repeated(field: FieldDescriptor, hint: Any) -> tuple[Read, Write]:
    name = field.name
    convert, fill = _converters(field, hint)

    def read(message: Any) -> tuple[Any, ...]:
        values: Iterable[Any] = getattr(message, name)
        return tuple([convert(value) for value in values])

    def write_messages(message: Any, values: Iterable[Any]) -> None:
        target = getattr(message, name)
        for value in values:
            fill(target.add(), value)

    def write_scalars(message: Any, values: Iterable[Any]) -> None:
        getattr(message, name).extend(values)

    return read, (write_messages if field.message_type is not None else write_scalars)


def _txn_field(hint: Any) -> tuple[Read, Write]:
    optional = NoneType in get_args(hint)

    def read(message: Any) -> c.TxnId | None:
        if optional and not (message.HasField("txnid_most_bits") or message.HasField("txnid_least_bits")):
            return None
        return c.TxnId(signed(message.txnid_most_bits), signed(message.txnid_least_bits))

    def write(message: Any, value: c.TxnId | None) -> None:
        if value is not None:
            message.txnid_most_bits = unsigned(value.most)
            message.txnid_least_bits = unsigned(value.least)

    return read, write


def _tables() -> tuple[dict[type[Any], tuple[int, str, MessageCodec]], dict[int, tuple[str, MessageCodec]]]:
    writing: dict[type[Any], tuple[int, str, MessageCodec]] = {}
    reading: dict[int, tuple[str, MessageCodec]] = {}
    fields = pb.BaseCommand.DESCRIPTOR.fields_by_number
    for make, number in NUMBERS.items():
        field = fields[number]
        assert field.message_type is not None
        skip = NOT_IN_PROTOBUF if make in (c.CommandSend, c.CommandMessage) else frozenset[str]()
        shape = MessageCodec(make, field.message_type, skip)
        writing[make] = number, field.name, shape
        reading[number] = field.name, shape
    return writing, reading


_WRITING, _READING = _tables()
_BROKER_METADATA = MessageCodec(c.BrokerEntryMetadata, pb.BrokerEntryMetadata.DESCRIPTOR)
_MESSAGE_ID = MessageCodec(c.MessageIdData, pb.MessageIdData.DESCRIPTOR)


def encode(command: c.Command) -> bytes:
    """Return one whole frame, entry included."""
    if isinstance(command, c.CommandSend | c.CommandMessage):
        return b"".join((frame_head(command), command.entry))
    return command_frame(_body(command))


def frame_head(command: c.CommandSend | c.CommandMessage) -> bytes:
    """Return the frame up to the entry, for callers that send the entry from where it is."""
    before = b"" if isinstance(command, c.CommandSend) else encode_broker_metadata(command.broker_metadata)
    return command_frame(_body(command), len(before) + len(command.entry)) + before


def _body(command: c.Command) -> bytes:
    number, name, shape = _WRITING[type(command)]
    base = pb.BaseCommand()
    base.type = number  # type: ignore[assignment]  # an enum of protobuf is an int at run time
    part = getattr(base, name)
    part.SetInParent()
    shape.write(part, command)
    return base.SerializeToString()


def encode_broker_metadata(metadata: c.BrokerEntryMetadata | None) -> bytes:
    """Return magic, size and metadata that stand before an entry (rule 1.1.6); nothing for None."""
    if metadata is None:
        return b""
    body = pb.BrokerEntryMetadata()
    _BROKER_METADATA.write(body, metadata)
    data = body.SerializeToString()
    return BROKER_METADATA_MAGIC.to_bytes(2, "big") + len(data).to_bytes(4, "big") + data


def decode_broker_metadata(data: bytes) -> c.BrokerEntryMetadata:
    """Read the metadata alone, without magic and size."""
    metadata: c.BrokerEntryMetadata = _BROKER_METADATA.read(parse(pb.BrokerEntryMetadata, data))
    return metadata


def encode_message_id(message_id: c.MessageIdData) -> bytes:
    """Return a message id on its own, as clients keep it between their runs."""
    body = pb.MessageIdData()
    _MESSAGE_ID.write(body, message_id)
    return body.SerializeToString()


def decode_message_id(data: bytes) -> c.MessageIdData:
    """Read a message id on its own. Raises ProtocolError."""
    message_id: c.MessageIdData = _MESSAGE_ID.read(parse(pb.MessageIdData, data))
    return message_id


def parse(kind: type[M], data: bytes) -> M:
    """Parse with protobuf, raising our error; also refuses what lacks a required field."""
    try:
        message = kind.FromString(data)
    except DecodeError as error:
        raise ProtocolError(f"{name_of(kind)} of {len(data)} bytes is not protobuf: {error}") from None
    if not message.IsInitialized():
        raise ProtocolError(f"{name_of(kind)} of {len(data)} bytes lacks a required field")
    return message


PARTS_MAX: Final = 10_000
"""Items in all lists of one command; ten thousand take some ten milliseconds."""
_PARTS_FROM: Final = 16 << 10
"""Bytes below which a command cannot hold too many."""


def _parts(message: Any) -> int:
    """Count the items of the lists in a message, without those of messages in lists."""
    count = 0
    for _, value in message.ListFields():
        if isinstance(value, Message):
            count += _parts(value)
        elif isinstance(value, Sized) and not isinstance(value, str | bytes):
            count += len(value)
    return count


def decode(body: bytes, entry: bytes = b"", checksum_ok: bool = True, *, limited: bool = True) -> c.Command:
    """The command in a serialized BaseCommand; for Send and Message with the entry that followed it.

    Not ``limited``: its lists may be as long as a broker's lists of topics.
    """
    base = parse(pb.BaseCommand, body)
    known = _READING.get(base.type)
    if known is None or not base.HasField(known[0]):  # type: ignore[arg-type]  # the name comes from the descriptor
        raise ProtocolError(f"a command of type {base.type} without its body")
    name, shape = known
    if limited and len(body) > _PARTS_FROM and (parts := _parts(base)) > PARTS_MAX:
        raise ProtocolError(f"{name_of(shape.make)} with {parts} items in its lists, at most {PARTS_MAX} are allowed")
    values = [read(getattr(base, name)) for _, read in shape.readers]
    if shape.make is c.CommandSend:
        values += entry, checksum_ok
    elif shape.make is c.CommandMessage:
        values += None, entry, checksum_ok
    command: c.Command = shape.make(*values)
    return command
