"""Frames in bulk are what the decoder of the protocol makes of them, however the bytes arrive and whatever is wrong."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from crc32c import crc32c as library_crc32c
from hypothesis import given
from hypothesis import strategies as st

from magnetar.client.bulk import block_receiver
from magnetar.client.bulk.block_receiver import BlockReceiver
from magnetar.client.handshake import MAX_FRAME_SIZE
from magnetar.columnar.entries.block import EntryBlock, uint8_array
from magnetar.columnar.entries.checksums import CRC_TABLES, crc32c
from magnetar.model.errors import ProtocolError
from magnetar.protocol import commands as c
from magnetar.protocol.codec import encode
from magnetar.protocol.decoder import Decoder, MalformedBytesError
from magnetar.protocol.entries import EntryMetadata, build_entry

CONSUMER = 5


class Pieces:
    """A connection whose bytes come in given pieces."""

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = pieces
        self._decoder = Decoder(MAX_FRAME_SIZE)

    def take_pushes(self) -> list[c.Command]:
        return []

    def take_held(self) -> bytes:
        return self._decoder.take_held()

    def hold(self, data: bytes) -> None:
        self._decoder.feed(data)

    def decode(self, data: bytes) -> list[c.Command]:
        return self._decoder.feed(data)

    def read_into(self, buffer: memoryview, wait: float) -> int:
        return self.read_more(buffer)

    def read_more(self, buffer: memoryview) -> int:
        if not self._pieces:
            return 0
        piece = self._pieces.pop(0)
        count = min(len(piece), len(buffer))
        buffer[:count] = piece[:count]
        if piece[count:]:
            self._pieces.insert(0, piece[count:])
        return count


def plain(items: list[Any]) -> list[Any]:
    """Messages as ledger, entry, bytes, index and whether the checksum holds; others as they are."""
    found: list[Any] = []
    for item in items:
        if isinstance(item, EntryBlock):
            found += [(*item.stored(number), True) for number in range(len(item))]
        elif isinstance(item, c.CommandMessage) and item.consumer_id == CONSUMER:
            shown = item.broker_metadata
            # Of an entry whose checksum does not hold nothing else counts.
            index = -1 if shown is None or shown.index is None or not item.checksum_ok else shown.index
            found.append((*item.message_id[:2], item.entry, index, item.checksum_ok))
        else:
            found.append(item)
    return found


def received(pieces: list[bytes], *, release: bool = False) -> tuple[list[Any], bool]:
    """Everything, and whether it ended with an error."""
    receiver = BlockReceiver(Pieces(pieces), CONSUMER)  # type: ignore[arg-type]  # what it needs of a connection
    found: list[Any] = []
    try:
        while items := receiver.receive(0):
            found += items
            if release:
                receiver.release()
    except ProtocolError:
        return plain(found), True
    return plain(found), False


def decoded(data: bytes) -> tuple[list[Any], bool]:
    decoder = Decoder(MAX_FRAME_SIZE)
    try:
        return plain(decoder.feed(data)), False
    except MalformedBytesError as error:
        return plain(error.decoded), True


metadata = st.none() | st.builds(
    c.BrokerEntryMetadata, st.none() | st.integers(0, 1 << 50), st.none() | st.integers(0, 1 << 50)
)
ids = st.builds(
    c.MessageIdData,
    st.integers(0, 1 << 62),
    st.integers(0, 1 << 40),
    st.integers(-1, 9),
    st.sampled_from([-1, 3]),
    st.sampled_from([(), (7, 9)]),
    st.just(0),
    st.none(),
)
payloads = st.binary(max_size=30) | st.sampled_from([b"x" * 3000, b"y" * 70_000])
messages = st.builds(
    c.CommandMessage,
    st.sampled_from([CONSUMER, CONSUMER, CONSUMER, 6]),
    ids,
    st.integers(0, 300),
    st.sampled_from([(), (), (1, 2)]),
    st.sampled_from([None, None, 4]),
    metadata,
    payloads.map(lambda payload: build_entry(EntryMetadata("p", 1, 2), payload)),
    st.just(True),
)
commands = st.one_of(
    messages,
    messages,
    messages,
    st.sampled_from([c.CommandPing(), c.CommandSuccess(3), c.CommandCloseConsumer(CONSUMER, 1)]),
)


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """Outside of what is timed."""
    received([encode(c.CommandPing())])


def cut(data: bytes, positions: list[int]) -> list[bytes]:
    borders = sorted({0, len(data), *(position % (len(data) + 1) for position in positions)})
    return [data[start:end] for start, end in itertools.pairwise(borders)]


@given(st.lists(commands, max_size=8), st.lists(st.integers(0, 1 << 20), max_size=6), st.booleans())
def test_blocks_are_what_the_decoder_gives(sent: list[c.Command], positions: list[int], release: bool) -> None:
    data = b"".join(encode(command) for command in sent)
    wanted, _ = decoded(data)
    pieces = cut(data, positions)
    found, failed = received(pieces, release=release)
    assert not failed
    assert found == wanted


@given(st.lists(commands, min_size=1, max_size=4), st.data())
def test_damage_is_judged_by_the_decoder(sent: list[c.Command], data: st.DataObject) -> None:
    damaged = bytearray(b"".join(encode(command) for command in sent))
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, min(len(damaged), 300) - 1))] = data.draw(st.integers(0, 255))
    (found, failed), (wanted, judged) = received([bytes(damaged)]), decoded(bytes(damaged))
    assert failed == judged
    # A connection that is lost takes along what was not handed over; the reader asks for it again.
    assert found == wanted[: len(found)] if failed else found == wanted


def test_buffers_are_changed_in_the_middle_of_a_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_receiver, "_BUFFER_BYTES", 1000)
    monkeypatch.setattr(block_receiver, "_LEAST_ROOM", 100)
    monkeypatch.setattr(block_receiver, "_ENTRIES", 3)
    entries = [build_entry(EntryMetadata("p", number, 2), b"z" * (number * 37 % 5000)) for number in range(300)]
    sent = [
        c.CommandMessage(CONSUMER, c.MessageIdData(1, number), 0, (), None, None, entry)
        for number, entry in enumerate(entries)
    ]
    found, failed = received([b"".join(encode(one) for one in sent)])
    assert not failed
    assert [one[2] for one in found] == entries


@given(st.binary(max_size=100))
def test_the_checksum_is_that_of_the_library(data: bytes) -> None:
    assert crc32c(uint8_array(data), 0, len(data), CRC_TABLES) == library_crc32c(data)
    assert np.uint32(CRC_TABLES[0, 1]) == 0xF26B8303
