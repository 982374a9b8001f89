"""The socket of one client as faults see it: frames in and out may be dropped, held up, refused or cost the connection.

It stands between asyncio's transport and the broker's own protocol, which both know nothing of it. Frames keep their
order in each direction: all that follow one that is held up wait.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, cast

from typing_extensions import override

from magnetar.broker.connection.listener import Listener
from magnetar.broker.connection.open_handles import OpenConsumer
from magnetar.broker.topic.publish.producer import Producer
from magnetar.testing.kit.fault import Deed, Fault
from magnetar.testing.kit.frame_cutter import FrameCutter


class ActiveFaults:
    """The faults of one broker and its open connections; a test switches them on from another thread."""

    def __init__(self) -> None:
        self.all: tuple[Fault, ...] = ()
        self.connections: set[FaultyConnection] = set()
        self.traffic = 0
        """Pieces that were read from sockets or written to them."""

    def add(self, fault: Fault) -> Fault:
        """Switch on, for frames that come from now on."""
        self.all = (*(one for one in self.all if not one.over), fault)
        return fault

    def struck(self, frame: bytes, connection: FaultyConnection) -> Fault | None:
        """Return the first fault that happens to a frame."""
        return next((fault for fault in self.all if fault.strikes(frame, connection)), None)


class _Lane:
    """One direction. ``deliver`` hands bytes on."""

    def __init__(self, connection: FaultyConnection, deliver: Callable[[bytes], None]) -> None:
        self._connection = connection
        self._deliver = deliver
        self._cutter = FrameCutter()
        self._waiting: deque[tuple[float, bytes]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self.held = 0

    def take(self, data: bytes) -> None:
        """Hand on what may pass."""
        passing: list[bytes] = []
        for frame in self._cutter.feed(data):
            fault = self._connection.faults.struck(frame, self._connection) if self._connection.faults.all else None
            if fault is not None and fault.deed is not Deed.DELAY:
                self._flush(passing)
                self._connection.strike(fault, frame)
                if self._connection.cut:
                    return
            elif fault is not None or self._waiting:
                self._flush(passing)
                self._hold(frame, fault.seconds if fault is not None else 0.0)
            else:
                passing.append(frame)
        self._flush(passing)

    def _flush(self, passing: list[bytes]) -> None:
        if passing:
            self._deliver(b"".join(passing) if len(passing) > 1 else passing[0])
            passing.clear()

    def _hold(self, frame: bytes, seconds: float) -> None:
        self._waiting.append((self._connection.loop.time() + seconds, frame))
        self.held += len(frame)
        if self._timer is None:
            self._timer = self._connection.loop.call_at(self._waiting[0][0], self._due)

    def _due(self) -> None:
        self._timer = None
        ready, now = [], self._connection.loop.time()
        while self._waiting and self._waiting[0][0] <= now:
            ready.append(self._waiting.popleft()[1])
        self.held -= sum(map(len, ready))
        if self._waiting:
            self._timer = self._connection.loop.call_at(self._waiting[0][0], self._due)
        self._flush(ready)

    def end(self) -> None:
        """Forget what waits."""
        if self._timer is not None:
            self._timer.cancel()
        self._waiting.clear()
        self.held = 0


class FaultyConnection(asyncio.Protocol):
    """One connection of a client. Implements :class:`magnetar.testing.kit.fault.OpenNames`."""

    def __init__(self, listener: Listener, faults: ActiveFaults) -> None:
        self.faults = faults
        self.loop = asyncio.get_running_loop()
        self.cut = False
        self._listener = listener
        self._in = _Lane(self, listener.data_received)
        self.out = _Lane(self, self._write)
        self._transport: asyncio.Transport
        self._dead = False

    # faults ------------------------------------------------------------------------------------------------------

    def strike(self, fault: Fault, frame: bytes) -> None:
        """Do what the fault does to a frame that is not handed on."""
        if fault.deed is Deed.CUT:
            self.abort()
        elif fault.deed is Deed.REFUSE and (answer := fault.answer(frame)) is not None:
            self._write(answer)

    def abort(self) -> None:
        """Cut it, as a network does: neither side hears why."""
        self.cut = True
        self._transport.abort()

    def abandon(self) -> None:
        """The broker is dead: cut it, and tell the broker's protocol nothing."""
        self._dead = True
        self.abort()

    def producer(self, producer_id: int) -> str | None:
        found = self._listener.session.producers.get(producer_id)
        return found.log.name if isinstance(found, Producer) else None

    def consumer(self, consumer_id: int) -> tuple[str, str] | None:
        found = self._listener.session.consumers.get(consumer_id)
        return (found.topic.name.fqn, found.subscription.name) if isinstance(found, OpenConsumer) else None

    def serves(self, topic: str) -> bool:
        """Whether a producer or consumer of the topic, or of a partition of it, is open on it."""
        session = self._listener.session
        names = [one.log.name for one in session.producers.values() if isinstance(one, Producer)]
        names += [one.topic.name.fqn for one in session.consumers.values() if isinstance(one, OpenConsumer)]
        return any(name == topic or name.startswith(f"{topic}-partition-") for name in names)

    # the socket --------------------------------------------------------------------------------------------------

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        # asyncio does so only where the listening socket names its protocol, and time stands still for what is late
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.faults.connections.add(self)
        self.faults.traffic += 1
        self._listener.connection_made(FaultyTransport(self._transport, self))

    @override
    def data_received(self, data: bytes) -> None:
        self.faults.traffic += 1
        if not self.cut:
            self._in.take(data)

    def _write(self, data: bytes) -> None:
        self.faults.traffic += 1
        if not self._transport.is_closing():
            self._transport.write(data)

    @override
    def pause_writing(self) -> None:
        self._listener.pause_writing()

    @override
    def resume_writing(self) -> None:
        self._listener.resume_writing()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self.cut = True
        self.faults.traffic += 1
        self.faults.connections.discard(self)
        self._in.end()
        self.out.end()
        if not self._dead:
            self._listener.connection_lost(exc)


class FaultyTransport(asyncio.Transport):
    """What the broker's protocol writes to."""

    def __init__(self, real: asyncio.Transport, connection: FaultyConnection) -> None:
        super().__init__()
        self._real = real
        self._connection = connection

    @override
    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self._connection.cut:
            self._connection.out.take(bytes(data))

    @override
    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        self.write(b"".join(list_of_data))

    @override
    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._real.get_extra_info(name, default)

    @override
    def get_write_buffer_size(self) -> int:
        return self._real.get_write_buffer_size() + self._connection.out.held

    @override
    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._real.set_write_buffer_limits(high, low)

    @override
    def pause_reading(self) -> None:
        self._real.pause_reading()

    @override
    def resume_reading(self) -> None:
        self._real.resume_reading()

    @override
    def is_reading(self) -> bool:
        return self._real.is_reading()

    @override
    def is_closing(self) -> bool:
        return self._real.is_closing()

    @override
    def close(self) -> None:
        self._real.close()

    @override
    def abort(self) -> None:
        self._real.abort()
