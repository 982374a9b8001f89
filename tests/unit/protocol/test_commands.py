"""Every command, both directions: typed -> frame -> typed, and against protobuf itself."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from magnetar.model.errors import ServerError
from magnetar.protocol import codec
from magnetar.protocol import commands as c
from magnetar.protocol.commands import Command, CommandMessage, CommandSend
from magnetar.protocol.compression import CompressionType
from magnetar.protocol.decoder import Decoder
from magnetar.protocol.generated import pulsar_pb2 as pb
from tests.support.command_strategies import commands, instances


def test_every_number_of_the_schema_has_a_typed_command() -> None:
    """Each type of BaseCommand in the protocol definition has a typed command (rule 1.1.11)."""
    assert sorted(codec.NUMBERS.values()) == sorted(pb.BaseCommand.Type.values())


@pytest.mark.parametrize("make", list(codec.NUMBERS), ids=lambda make: make.__name__)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_round_trip(make: type, data: st.DataObject) -> None:
    command: Command = data.draw(instances(make))
    frame = codec.encode(command)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    back = Decoder().feed(frame)
    assert back == [command]
    assert type(back[0]) is make
    assert codec.encode(back[0]) == frame


@settings(max_examples=100, deadline=None)
@given(commands)
def test_the_hand_written_readers_agree_with_the_codec(command: Command) -> None:
    frame = codec.encode(command)
    body = frame[8 : 8 + int.from_bytes(frame[4:8], "big")]
    entry = command.entry if isinstance(command, CommandSend | CommandMessage) else b""
    expected = codec.decode(body, entry)
    if isinstance(command, CommandMessage) and isinstance(expected, CommandMessage):
        expected = expected._replace(broker_metadata=command.broker_metadata)
    assert Decoder().feed(frame) == [expected]


ENUMS: dict[type[IntEnum], Any] = {
    c.AckType: pb.CommandAck.AckType,
    c.AuthMethod: pb.AuthMethod,
    c.InitialPosition: pb.CommandSubscribe.InitialPosition,
    c.KeySharedMode: pb.KeySharedMode,
    c.LookupType: pb.CommandLookupTopicResponse.LookupType,
    c.MetadataType: pb.CommandPartitionedTopicMetadataResponse.LookupType,
    c.NamespaceMode: pb.CommandGetTopicsOfNamespace.Mode,
    c.ProducerAccessMode: pb.ProducerAccessMode,
    c.ResourceType: pb.CommandTopicMigrated.ResourceType,
    c.SchemaType: pb.Schema.Type,
    c.SubType: pb.CommandSubscribe.SubType,
    c.TxnAction: pb.TxnAction,
    c.ValidationError: pb.CommandAck.ValidationError,
    CompressionType: pb.CompressionType,
    ServerError: pb.ServerError,
}


def test_every_enum_of_a_command_is_known() -> None:
    found = {one for one in vars(c).values() if isinstance(one, type) and issubclass(one, IntEnum)}
    assert found <= ENUMS.keys()


@pytest.mark.parametrize("mine", ENUMS, ids=lambda mine: mine.__name__)
def test_names_stand_for_the_numbers_of_the_schema(mine: type[IntEnum]) -> None:
    """Both sides of a round trip would agree on a wrong number."""
    names = {_plain(name): number for name, number in ENUMS[mine].items()}
    for name, one in mine.__members__.items():
        assert names.get(_plain(name), one if one < 0 else None) == one, name
    assert set(names.values()) <= set(mine)


def _plain(name: str) -> str:
    """What is the same in all ways to write a name: NON_PERSISTENT, AutoSplit, BOOLEAN and Bool."""
    return name.replace("_", "").casefold().replace("boolean", "bool")
