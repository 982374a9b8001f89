"""Every command, both directions: typed -> frame -> typed, and against protobuf itself."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from magnetar.protocol import codec
from magnetar.protocol.commands import Command, CommandMessage, CommandSend
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
