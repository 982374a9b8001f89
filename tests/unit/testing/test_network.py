"""The simulated network keeps order, re-chunks, pushes back, and breaks in each way it says it does."""

from __future__ import annotations

import asyncio
import errno

import pytest
from typing_extensions import override

from magnetar.testing.network import Direction, Network
from magnetar.testing.processes import Process, SimulationError
from magnetar.testing.simloop import SimLoop, run
from magnetar.testing.transport import Weather
from tests.support.network_pair import Pair, Recorder, _pair, over

PAYLOAD = bytes(range(256)) * 40


def test_bytes_keep_their_order_and_come_in_every_size_of_chunk() -> None:
    async def scenario(pair: Pair) -> tuple[list[int], float]:
        for start in range(0, len(PAYLOAD), 512):
            pair.client.transport.write(PAYLOAD[start : start + 512])
        pair.server.transport.writelines([b"a", bytearray(b"b"), memoryview(b"c")])
        started = asyncio.get_running_loop().time()
        while pair.server.received != PAYLOAD:
            assert PAYLOAD.startswith(pair.server.received)
            await asyncio.sleep(0.0001)
        await asyncio.sleep(1)
        assert pair.client.received == b"abc"
        return [len(chunk) for chunk in pair.server.chunks], asyncio.get_running_loop().time() - started

    runs = over(200, scenario)
    sizes = [size for chunks, _ in runs for size in chunks]
    assert 1 in sizes, "no single byte"
    assert any(size > 512 for size in sizes), "nothing coalesced"
    assert any(1 < size < 512 for size in sizes), "nothing split"
    assert len({duration for _, duration in runs}) > 20
    assert runs == over(200, scenario), "equal seeds, equal runs"


def test_transport_tells_addresses() -> None:
    async def scenario(pair: Pair) -> None:
        assert pair.client.transport.get_extra_info("peername") == ("broker", 6650)
        assert pair.server.transport.get_extra_info("sockname") == ("broker", 6650)
        own = pair.client.transport.get_extra_info("sockname")
        assert pair.server.transport.get_extra_info("peername") == own
        assert pair.client.transport.get_extra_info("cipher", "none") == "none"

    over(1, scenario)


def test_close_flushes_what_was_written_and_both_ends_learn_it() -> None:
    async def scenario(pair: Pair) -> None:
        big = PAYLOAD * 20
        pair.client.transport.write(big)
        pair.client.transport.close()
        assert pair.client.transport.is_closing()
        pair.client.transport.write(b"ignored")
        pair.server.transport.write(b"too late")
        await pair.server.lost
        await pair.client.lost
        assert pair.server.received == big
        assert pair.server.events == ["made", "eof", "lost"]
        assert pair.server.error is pair.client.error is None
        assert pair.client.received == b""
        assert pair.network.links == []

    over(50, scenario)


def test_write_eof_leaves_the_other_direction_open() -> None:
    class Answering(Recorder):
        @override
        def eof_received(self) -> bool:
            self.transport.write(b"answer")
            self.transport.close()
            return True

    async def main() -> None:
        pair = await _pair()
        pair.server.transport.set_protocol(answering := Answering())
        answering.transport = pair.server.transport
        pair.client.transport.write(PAYLOAD * 20)
        pair.client.transport.write_eof()
        with pytest.raises(RuntimeError, match="write_eof"):
            pair.client.transport.write(b"more")
        await pair.client.lost
        assert answering.received == PAYLOAD * 20
        assert pair.client.received == b"answer"

    for seed in range(20):
        run(seed, main())


def test_abort_drops_the_buffer_and_resets_the_peer() -> None:
    async def scenario(pair: Pair) -> int:
        pair.client.transport.write(PAYLOAD * 20)
        pair.client.transport.abort()
        await pair.client.lost
        await pair.server.lost
        assert pair.client.error is None
        assert isinstance(pair.server.error, ConnectionResetError)
        assert (PAYLOAD * 20).startswith(pair.server.received)
        return len(pair.server.received)

    received = over(50, scenario)
    assert max(received) <= 64 * 1024 < len(PAYLOAD * 20)
    assert min(received) == 0
    assert max(received) > 0


def test_writing_to_a_peer_that_is_gone_ends_in_a_reset() -> None:
    async def scenario(pair: Pair) -> None:
        pair.link.freeze(Direction.TO_CLIENT)  # the client does not see the end of the server
        pair.server.transport.close()
        await pair.server.lost
        pair.client.transport.write(b"anyone?")
        await asyncio.sleep(1)
        assert not pair.client.lost.done()
        pair.link.thaw(Direction.TO_CLIENT)
        await pair.client.lost

    over(20, scenario)


def test_a_cut_loses_bytes_in_flight_both_ways() -> None:
    async def scenario(pair: Pair) -> tuple[int, int]:
        pair.client.transport.write(PAYLOAD)
        pair.server.transport.write(PAYLOAD)
        await asyncio.sleep(0.004)
        pair.link.cut(ConnectionResetError("pulled"))
        pair.client.transport.write(b"into the void")
        await pair.client.lost
        await pair.server.lost
        assert str(pair.client.error) == str(pair.server.error) == "pulled"
        assert PAYLOAD.startswith(pair.client.received)
        assert PAYLOAD.startswith(pair.server.received)
        return len(pair.client.received), len(pair.server.received)

    received = over(200, scenario)
    assert {0, len(PAYLOAD)} <= {size for sizes in received for size in sizes}
    assert any(0 < size < len(PAYLOAD) for sizes in received for size in sizes)


def test_a_cut_without_exception_looks_like_an_orderly_end() -> None:
    async def scenario(pair: Pair) -> None:
        pair.link.cut()
        pair.link.thaw()
        await pair.client.lost
        await pair.server.lost
        assert pair.client.error is pair.server.error is None

    over(5, scenario)


def test_cut_rate_cuts_by_chance() -> None:
    async def scenario(pair: Pair) -> bool:
        pair.client.transport.write(PAYLOAD)
        await asyncio.sleep(10)
        return pair.server.lost.done()

    assert 20 < sum(over(200, scenario, lambda: Weather(cut_rate=0.1))) < 180
    assert sum(over(20, scenario)) == 0


def test_half_open_connections_hold_bytes_back_until_thawed() -> None:
    async def scenario(pair: Pair) -> None:
        pair.link.freeze(Direction.TO_SERVER)
        pair.client.transport.write(b"question")
        pair.server.transport.write(b"hello")
        await asyncio.sleep(3600)
        assert (pair.server.received, pair.client.received) == (b"", b"hello")
        pair.link.freeze()
        pair.server.transport.write(b" again")
        await asyncio.sleep(3600)
        assert pair.client.received == b"hello"
        assert not pair.client.lost.done()
        pair.link.thaw()
        await asyncio.sleep(1)
        assert (pair.server.received, pair.client.received) == (b"question", b"hello again")

    over(20, scenario)


def test_back_pressure_at_the_water_marks() -> None:
    async def scenario(pair: Pair) -> None:
        transport = pair.client.transport
        transport.set_write_buffer_limits(high=1000)
        assert transport.get_write_buffer_limits() == (250, 1000)
        pair.server.transport.pause_reading()
        assert not pair.server.transport.is_reading()
        transport.write(bytes(4096))
        assert transport.get_write_buffer_size() == 0, "the kernel takes a window"
        transport.write(bytes(1000))
        assert (transport.get_write_buffer_size(), pair.client.events) == (1000, ["made"])
        transport.write(b"x")
        transport.write(b"y")
        assert pair.client.events == ["made", "pause"]
        await asyncio.sleep(60)
        assert transport.get_write_buffer_size() == 1002
        assert pair.server.received == b""
        pair.server.transport.resume_reading()
        await asyncio.sleep(1)
        assert pair.client.events == ["made", "pause", "resume"]
        assert 0 <= pair.client.resumed_at <= 250
        assert transport.get_write_buffer_size() == 0
        assert pair.server.received == bytes(5096) + b"xy"
        with pytest.raises(ValueError, match="high"):
            transport.set_write_buffer_limits(high=1, low=2)

    over(20, scenario, lambda: Weather(window_bytes=4096))


def test_listeners_refuse_and_collide() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimLoop)
        with pytest.raises(ConnectionRefusedError):
            await loop.create_connection(Recorder, "broker", 6650)
        network = Network(loop)
        with pytest.raises(ConnectionRefusedError):
            await loop.create_connection(Recorder, "broker", 6650)
        server = network.listen(Recorder, "broker", 6650)
        with pytest.raises(OSError) as caught:
            network.listen(Recorder, "broker", 6650)
        assert caught.value.errno == errno.EADDRINUSE
        server.close()
        network.listen(Recorder, "broker", 6650)
        assert not server.is_serving()
        assert network.listen(Recorder, "broker", 0).address != network.listen(Recorder, "broker", 0).address

    run(1, main())


class Failing(Recorder):
    @override
    def data_received(self, data: bytes) -> None:
        raise ValueError("cannot read this")


def test_an_exception_in_the_protocol_closes_its_connection_and_fails_the_run() -> None:
    seen: list[Recorder] = []

    async def main() -> None:
        pair = await _pair()
        seen.append(pair.client)
        pair.server.transport.set_protocol(Failing())
        pair.client.transport.write(b"x")
        await pair.client.lost

    with pytest.raises(SimulationError, match=r"data_received\(\) call failed"):
        run(1, main())
    assert isinstance(seen[0].error, ConnectionResetError)


class Buffered(asyncio.BufferedProtocol):
    def __init__(self) -> None:
        self.space = bytearray(7)
        self.received = b""

    @override
    def get_buffer(self, sizehint: int) -> bytearray:
        return self.space

    @override
    def buffer_updated(self, nbytes: int) -> None:
        self.received += self.space[:nbytes]


def test_buffered_protocols_are_served() -> None:
    async def scenario(pair: Pair) -> None:
        buffered = Buffered()
        pair.server.transport.set_protocol(buffered)
        pair.client.transport.write(PAYLOAD)
        await asyncio.sleep(60)
        assert buffered.received == PAYLOAD

    over(5, scenario)


class Echo(Recorder):
    @override
    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self.transport.write(data)


def _killed_server(seed: int) -> tuple[int, type[BaseException] | None]:
    """How much came back, and how the client learned that the server's process is dead."""

    async def main() -> tuple[int, type[BaseException] | None]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimLoop)
        network = Network(loop)
        process = Process(loop, "server")
        made: list[Echo] = []

        def accept() -> Echo:
            assert Process.current() is process
            made.append(Echo())
            return made[-1]

        async def serve() -> None:
            await (await loop.create_server(accept, "broker", 6650)).serve_forever()

        serving = process.start(serve())
        await asyncio.sleep(0)
        _, client = await network.connect(Recorder, "broker", 6650)
        client.transport.write(PAYLOAD)
        await asyncio.sleep(loop.rng.uniform(0.002, 0.02))
        process.kill()
        served = len(made[0].received)
        await client.lost
        assert len(made[0].received) == served, "a dead process read"
        assert "lost" not in made[0].events, "a dead process was called"
        assert not serving.done()
        with pytest.raises(ConnectionRefusedError):
            await network.connect(Recorder, "broker", 6650)
        network.listen(Recorder, "broker", 6650)
        assert PAYLOAD.startswith(client.received)
        return len(client.received), None if client.error is None else type(client.error)

    return run(seed, main())


def test_a_killed_process_drops_its_listener_and_connections() -> None:
    ends = [_killed_server(seed) for seed in range(100)]
    assert {error for _, error in ends} == {None, ConnectionResetError}
    assert {0, len(PAYLOAD)} < {size for size, _ in ends}, "nothing in between"
    assert ends == [_killed_server(seed) for seed in range(100)]
