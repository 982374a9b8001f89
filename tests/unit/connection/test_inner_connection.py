"""A connection without a socket keeps what sockets promise: order, water marks, reading in pieces, one end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from magnetar.broker.connection import inner_connection
from magnetar.broker.connection.inner_connection import InnerTransport
from tests.support.loop_turns import settled


class Peer(asyncio.Protocol):
    def __init__(self) -> None:
        self.got = bytearray()
        self.pieces: list[int] = []
        self.paused: list[bool] = []
        self.lost = 0
        self.transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.got += data
        self.pieces.append(len(data))

    def pause_writing(self) -> None:
        self.paused.append(True)

    def resume_writing(self) -> None:
        self.paused.append(False)

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost += 1


def pair() -> tuple[Peer, Peer]:
    loop = asyncio.get_running_loop()
    ends = InnerTransport(loop, {"peername": ("a", 1)}), InnerTransport(loop, {})
    peers = Peer(), Peer()
    ends[0].join(ends[1], peers[0])
    ends[1].join(ends[0], peers[1])
    return peers


def test_bytes_come_in_order_and_in_pieces() -> None:
    async def scenario() -> None:
        here, there = pair()
        sent = bytes(range(256)) * 4096
        here.transport.write(sent[:10])
        here.transport.writelines([sent[10:500_000], b"", sent[500_000:]])
        await settled()
        assert bytes(there.got) == sent
        assert max(there.pieces) <= 256 << 10
        assert here.transport.get_write_buffer_size() == 0
        assert (here.transport.get_extra_info("peername"), there.transport.get_extra_info("peername")) == (
            ("a", 1),
            None,
        )

    asyncio.run(scenario())


def test_an_end_that_does_not_read_holds_the_writer_up() -> None:
    async def scenario() -> None:
        here, there = pair()
        here.transport.set_write_buffer_limits(100, 50)
        there.transport.pause_reading()
        here.transport.write(b"x" * 101)
        await settled()
        assert (bytes(there.got), here.paused, here.transport.get_write_buffer_size()) == (b"", [True], 101)
        there.transport.resume_reading()
        await settled()
        assert (len(there.got), here.paused) == (101, [True, False])

    asyncio.run(scenario())


def test_the_writer_goes_on_at_the_low_water_mark_and_not_above_it() -> None:
    async def scenario() -> None:
        cases: list[tuple[int, list[bool], tuple[int, ...]]] = [
            (51, [True], (100, 50)), (50, [True, False], (100, 50)),
            (16_385, [True], ()), (16_384, [True, False], ()),
        ]  # fmt: skip
        for left, paused, limits in cases:
            here, there = pair()
            if limits:
                here.transport.set_write_buffer_limits(*limits)
            here.transport.write(bytes((256 << 10) + left))
            await asyncio.sleep(0)
            assert (here.transport.get_write_buffer_size(), here.paused) == (left, paused)
            await settled()
            assert (len(there.got), here.paused) == ((256 << 10) + left, [True, False])

    asyncio.run(scenario())


def test_closing_hands_over_what_was_written_and_ends_both() -> None:
    async def scenario() -> None:
        here, there = pair()
        here.transport.write(b"last words")
        here.transport.close()
        here.transport.close()
        here.transport.write(b"too late")
        await settled()
        assert (bytes(there.got), here.lost, there.lost) == (b"last words", 1, 1)
        there.transport.write(b"nobody is there")
        there.transport.abort()
        await settled()
        assert (bytes(here.got), here.lost, there.lost) == (b"", 1, 1)

    asyncio.run(scenario())


def test_aborting_drops_what_was_written() -> None:
    async def scenario() -> None:
        here, there = pair()
        here.transport.write(b"x")
        there.transport.abort()
        assert here.transport.get_write_buffer_size() == 0
        await settled()
        assert (bytes(there.got), here.lost, there.lost) == (b"", 1, 1)
        assert here.transport.is_closing() and there.transport.is_closing()

    asyncio.run(scenario())


def test_an_end_that_never_reads_does_not_keep_a_closed_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inner_connection, "LINGER_SECONDS", 0.0)

    async def scenario() -> None:
        here, there = pair()
        there.transport.pause_reading()
        here.transport.write(b"what nobody reads")
        here.transport.close()
        await asyncio.sleep(0.01)
        await settled()
        assert (here.lost, there.lost, bytes(there.got)) == (1, 1, b"")

    asyncio.run(scenario())


def test_nor_does_one_that_stops_in_the_midst_of_the_last_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit of a rate is met by what was read: the rest of the last words may then wait for days."""
    monkeypatch.setattr(inner_connection, "LINGER_SECONDS", 0.0)

    async def scenario() -> None:
        here, there = pair()
        here.transport.write(bytes(inner_connection._PIECE + 1))
        here.transport.close()
        await asyncio.sleep(0)
        there.transport.pause_reading()
        assert len(there.got) == inner_connection._PIECE
        await asyncio.sleep(0.01)
        await settled()
        assert (here.lost, there.lost, len(there.got)) == (1, 1, inner_connection._PIECE)

    asyncio.run(scenario())


@pytest.mark.parametrize(("limits", "high"), [({}, 65_536), ({"high": 1000}, 1000)])
def test_the_high_water_mark_is_asyncios_where_none_is_given(limits: dict[str, int], high: int) -> None:
    async def scenario() -> None:
        here, there = pair()
        there.transport.pause_reading()
        here.transport.set_write_buffer_limits(**limits)
        here.transport.write(bytes(high))
        assert (here.paused, here.transport.get_write_buffer_size()) == ([], high)
        here.transport.write(b"x")
        assert here.paused == [True]
        there.transport.resume_reading()
        await settled()
        assert here.paused == [True, False]
        assert len(there.got) == high + 1

    asyncio.run(scenario())
