"""How much one call of the decoder reads, and how large one command may be: each bound, one below and one above it."""

from __future__ import annotations

import pytest

from magnetar.broker.connection.bounds.metadata_bounds import PROPERTIES_MAX
from magnetar.model.errors import ProtocolError
from magnetar.model.schemas import SchemaType
from magnetar.protocol import codec
from magnetar.protocol import commands as c
from magnetar.protocol.decoder import (
    COMMAND_MAX,
    SLICE_BYTES,
    SLICE_COMMANDS,
    UNPARSED_FROM,
    Decoder,
)
from magnetar.protocol.entries import EntryMetadata, build_entry
from magnetar.protocol.varints import varint

FRAMES_AT_ONCE = 4096
"""As docs/guarantees.md says."""
PING = codec.encode(c.CommandPing())
TOPIC = "persistent://public/default/t"
ENTRY = build_entry(EntryMetadata("p", 0, 1), b"payload")
SCHEMA_MAX = 1 << 20
"""Bytes of the largest schema that a client can bring."""


def send(size: int) -> bytes:
    """A frame of a SEND that is so long."""
    frame = codec.encode(c.CommandSend(1, 2, 1, None, False, None, False, None, b""))
    command = frame[8:]
    return (size - 4).to_bytes(4, "big") + len(command).to_bytes(4, "big") + command + bytes(size - len(frame))


def command_of(size: int) -> bytes:
    """A frame whose command, a PRODUCER, is so long: its schema is as long as it takes."""

    def made(schema: int) -> bytes:
        return codec.encode(c.CommandProducer(TOPIC, 1, 2, schema=c.Schema("s", bytes(schema), SchemaType.AVRO)))

    schema = size - 100
    for _ in range(3):  # lengths are numbers of several bytes themselves
        schema += size - (len(made(schema)) - 8)
    frame = made(schema)
    assert len(frame) - 8 == size
    return frame


@pytest.mark.parametrize("size", [UNPARSED_FROM, UNPARSED_FROM + 1, SCHEMA_MAX, COMMAND_MAX - 1, COMMAND_MAX])
def test_a_command_may_be_as_long_as_the_largest_schema_and_what_stands_beside_it(size: int) -> None:
    assert COMMAND_MAX == SCHEMA_MAX + PROPERTIES_MAX
    (producer,) = Decoder(from_client=True).feed(command_of(size))
    assert isinstance(producer, c.CommandProducer)


def test_a_command_that_is_longer_is_refused_by_a_broker_and_read_by_a_client() -> None:
    """A client trusts its broker, whose lists of topics may be that long."""
    frame = command_of(COMMAND_MAX + 1)
    with pytest.raises(ProtocolError, match=f"a command of {COMMAND_MAX + 1} bytes, at most {COMMAND_MAX} are allowed"):
        Decoder(from_client=True).feed(frame)
    assert len(Decoder().feed(frame)) == 1


@pytest.mark.parametrize("items", [codec.PARTS_MAX, codec.PARTS_MAX + 1])
@pytest.mark.parametrize("item", ["topic", ""])
def test_lists_are_bounded_where_they_come_from_a_client(item: str, items: int) -> None:
    """Also if they take as few bytes as so many can: in shorter commands (``_PARTS_FROM``) nobody counts them."""
    frame = codec.encode(c.CommandAddPartitionToTxn(1, c.TxnId(0, 1), (item,) * items))
    assert len(frame) > UNPARSED_FROM
    (found,) = Decoder().feed(frame)
    assert isinstance(found, c.CommandAddPartitionToTxn) and len(found.partitions) == items
    if items <= codec.PARTS_MAX:
        assert Decoder(from_client=True).feed(frame) == [found]
    else:
        with pytest.raises(ProtocolError, match=f"at most {codec.PARTS_MAX} are allowed"):
            Decoder(from_client=True).feed(frame)


@pytest.mark.parametrize("padding", [0, UNPARSED_FROM])
@pytest.mark.parametrize(
    "command",
    [
        c.CommandSend(1, 2, 1, None, False, None, False, None, ENTRY),
        c.CommandMessage(1, c.MessageIdData(5, 6), 0, (), None, None, ENTRY),
    ],
    ids=["SEND", "MESSAGE"],
)
def test_an_entry_is_found_behind_a_command_that_somebody_made_long(padding: int, command: c.Command) -> None:
    """With a field that nobody knows, as later versions of the protocol may have."""
    frame = codec.encode(command)
    body = frame[8 : -len(ENTRY)]
    inner = body[4:] + (b"\x7a" + varint(padding) + bytes(padding) if padding else b"")
    longer = body[:3] + varint(len(inner)) + inner
    whole = (len(longer) + 4 + len(ENTRY)).to_bytes(4, "big") + len(longer).to_bytes(4, "big") + longer + ENTRY
    for from_client in (True, False):
        assert Decoder(from_client=from_client).feed(whole) == [command]


@pytest.mark.parametrize("from_client", [True, False])
def test_an_ack_is_read_in_pieces_from_a_size_on_by_a_broker(from_client: bool) -> None:
    def ack_of(size: int) -> bytes:
        ids = [c.MessageIdData(1, 2)] * (size // 6 - 4)
        frame = codec.encode(c.CommandAck(1, c.AckType.Individual, tuple(ids), request_id=1))
        missing = size - (len(frame) - 8)
        ids[0] = c.MessageIdData(1, 2, ack_set=(5,) * (missing // 2), partition=1 if missing % 2 else -1)
        return codec.encode(c.CommandAck(1, c.AckType.Individual, tuple(ids), request_id=1))

    for size in range(UNPARSED_FROM - 6, UNPARSED_FROM + 7):
        frame = ack_of(size)
        (found,) = Decoder(from_client=from_client).feed(frame)
        unparsed = from_client and len(frame) - 8 > UNPARSED_FROM
        assert isinstance(found, c.UnparsedCommand if unparsed else c.CommandAck), len(frame) - 8


@pytest.mark.parametrize("count", [SLICE_COMMANDS - 1, SLICE_COMMANDS, SLICE_COMMANDS + 1, 2 * SLICE_COMMANDS + 1])
def test_one_call_reads_so_many_commands_of_those_that_are_rare(count: int) -> None:
    decoder = Decoder(from_client=True)
    slices = [len(decoder.feed_slice(PING * count))]
    while decoder.waiting:
        slices.append(len(decoder.more()))
    slices = [size for size in slices if size]
    assert slices == [SLICE_COMMANDS] * (count // SLICE_COMMANDS) + [count % SLICE_COMMANDS] * (
        count % SLICE_COMMANDS > 0
    )


@pytest.mark.parametrize("size", [63, 64, 65, 127])
def test_one_call_reads_so_many_frames_like_the_first_and_the_one_that_stands_there(size: int) -> None:
    """Short frames are bounded by their number, long ones by their bytes."""
    fits = min(FRAMES_AT_ONCE, SLICE_BYTES // size)
    decoder = Decoder(from_client=True)
    assert len(decoder.feed_slice(send(size) * (2 * fits + 10))) == fits + 1
    assert decoder.waiting
    assert len(decoder.more()) == fits + 1
    assert len(decoder.more()) == 8
    assert not decoder.waiting


@pytest.mark.parametrize("limit", [1 << 10, 10 << 10])
def test_a_connection_may_have_a_slice_of_its_own(limit: int) -> None:
    decoder = Decoder(from_client=True)
    decoder.slice_bytes = limit
    assert len(decoder.feed_slice(send(128) * 200)) == limit // 128 + 1


@pytest.mark.parametrize("last", [c.MessageIdData(7, 3), c.MessageIdData(7, 3, 0, 2)], ids=("alike", "not alike"))
def test_one_call_reads_so_many_ids(last: c.MessageIdData) -> None:
    """An ACK of several ids counts by its bytes: 256 KB of them would hold the loop ten times as long as of SENDs."""
    ids = (*(c.MessageIdData(7, 5 if number % 2 else 300) for number in range(1600)), last)
    frame = codec.encode(c.CommandAck(1, c.AckType.Individual, ids))
    each = (len(frame) - 8) // 32
    decoder = Decoder(from_client=True)
    slices = [len(decoder.feed_slice(frame * 10))]
    while decoder.waiting:
        slices.append(len(decoder.more()))
    most = -(-SLICE_COMMANDS // each)
    assert slices == [most, most, 10 - 2 * most]
    assert Decoder(from_client=True).feed(frame * 10) == 10 * Decoder(from_client=True).feed(frame)
