"""A server that does no broker's work: it answers set-up, receipts every SEND and hands the entries to one consumer.

It exists to measure the generator: its rate against a sink is what the generator can do at most, and its CPU time per
entry there is what it takes from a measurement. The sink is honest enough for the checks of the loads: receipts carry
the sequence ids that came, and messages are those that a producer sent to the same topic, in order, once.

With a file it is the least that a server on a socket can do before a receipt is true: it appends what came to the file
and syncs it, once for all that one turn brought, in the thread that reads and answers.
"""

from __future__ import annotations

import argparse
import os
import selectors
import socket
import threading
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.load import wire
from benchmarks.load.bare_sync import PAGE
from benchmarks.load.connection import Address
from benchmarks.load.runs import Run, Scanner
from benchmarks.load.wire import HEAD, Command

LEDGER = 300
FIRST_ENTRY = 16_384  # entry ids of three bytes from the start, so that all frames have one width
BUFFER_BYTES = 4 * 1024 * 1024


@dataclass
class Topic:
    count: int = 0
    blocks: list[bytes] = field(default_factory=list)  # MESSAGE frames ready to go, of one width each
    strides: list[int] = field(default_factory=list)
    block: int = 0  # the next one to deliver: one subscription for each topic, delivery counts as acknowledgement
    offset: int = 0


@dataclass
class Consumer:
    topic: Topic
    permits: int = 0


class Session:
    """One client of the sink."""

    def __init__(self, sink: Sink, connection: socket.socket) -> None:
        self.sink = sink
        self.socket = connection
        self.buffer = bytearray(BUFFER_BYTES)
        self.view = memoryview(self.buffer)
        self.start = self.end = 0
        self.scanner = Scanner()
        self.out = bytearray()
        self.producers: dict[int, Topic] = {}
        self.consumers: dict[int, Consumer] = {}

    def receive(self) -> bool:
        """False when the client is gone."""
        try:
            count = self.socket.recv_into(self.view[self.end :])
        except BlockingIOError:
            return True
        except OSError:
            return False
        if not count:
            return False
        self.end += count
        for run in self.scanner.scan(self.buffer, self.start, self.end):
            self._handle(run)
        rest = bytes(self.view[self.scanner.position : self.end])
        self.view[: len(rest)] = rest
        self.start, self.end = 0, len(rest)
        return True

    def flush(self) -> None:
        while self.out:
            try:
                sent = self.socket.send(self.out)
            except BlockingIOError:
                return
            except OSError:
                self.out.clear()
                return
            del self.out[:sent]

    def _handle(self, run: Run) -> None:
        kind = run.layout.kind
        if kind == Command.SEND:
            self._on_sends(run)
        elif kind == Command.FLOW:
            for consumer, permits in zip(run.column(kind, 1).tolist(), run.column(kind, 2).tolist(), strict=True):
                self.consumers[consumer].permits += permits
        elif kind != Command.ACK:
            for row in range(run.count):
                self._set_up(kind, run.command(row))

    def _set_up(self, kind: int, body: bytes) -> None:
        _, found = wire.kind_and_body(body)
        if kind == Command.CONNECT:
            parts = wire.field(1, "sink"), wire.field(2, wire.PROTOCOL_VERSION)
            answer = wire.command(Command.CONNECTED, *parts)
        elif kind == Command.LOOKUP:
            answer = wire.command(Command.LOOKUP_RESPONSE, wire.field(3, 1), wire.field(4, _number(found[2])))
        elif kind == Command.PRODUCER:
            self.producers[_number(found[2])] = self.sink.topic(found[1])
            request = wire.field(1, _number(found[3]))
            answer = wire.command(Command.PRODUCER_SUCCESS, request, wire.field(2, "sink-0"))
        elif kind == Command.SUBSCRIBE:
            self.consumers[_number(found[4])] = Consumer(self.sink.topic(found[1]))
            answer = wire.command(Command.SUCCESS, wire.field(1, _number(found[5])))
        elif kind in (Command.CLOSE_CONSUMER, Command.CLOSE_PRODUCER):
            answer = wire.command(Command.SUCCESS, wire.field(1, _number(found[2])))
        elif kind == Command.PING:
            answer = wire.command(Command.PONG)
        else:
            return
        self.out += wire.frame(answer)

    def _on_sends(self, run: Run) -> None:
        """Receipts for a run, and its entries stored as MESSAGE frames if somebody may read them."""
        kind = int(Command.SEND)
        if len(self.producers) == 1:
            self._on_one_producer(run, next(iter(self.producers)))
            return
        for row, (producer, sequence) in enumerate(
            zip(run.column(kind, 1).tolist(), run.column(kind, 2).tolist(), strict=True)
        ):
            topic = self.producers[producer]
            self.out += _receipt(producer, sequence, FIRST_ENTRY + topic.count)
            if self.sink.keep:
                frame = _message(FIRST_ENTRY + topic.count, producer) + run.entry(row)
                topic.blocks.append(HEAD.pack(len(frame) - 4, HEAD.unpack_from(frame)[1]) + frame[8:])
                topic.strides.append(len(frame))
            topic.count += 1
        self.sink.unsynced += run.count * run.stride

    def _on_one_producer(self, run: Run, producer: int) -> None:
        topic = self.producers[producer]
        ids = _three_bytes(FIRST_ENTRY + topic.count, run.count)
        start, end = run.layout.values[(int(Command.SEND), 2)]
        row = _receipt(producer, int(run.column(int(Command.SEND), 2)[0]), FIRST_ENTRY)
        rows = np.tile(np.frombuffer(row, np.uint8), (run.count, 1))
        at = 12 + 1 + len(wire.varint(producer)) + 1
        rows[:, at : at + end - start] = run.rows[:, start:end]
        rows[:, -3:] = ids
        self.out += rows.tobytes()
        if self.sink.keep:
            head = np.tile(np.frombuffer(_message(FIRST_ENTRY, 1), np.uint8), (run.count, 1))
            head[:, -3:] = ids
            entries = np.ndarray(
                (run.count, run.stride - run.layout.width),
                np.uint8,
                run.buffer,
                run.offset + run.layout.width,
                (run.stride, 1),
            )
            frames = np.hstack([head, entries])
            frames[:, :4] = np.frombuffer((frames.shape[1] - 4).to_bytes(4, "big"), np.uint8)
            topic.blocks.append(frames.tobytes())
            topic.strides.append(frames.shape[1])
        topic.count += run.count
        self.sink.unsynced += run.count * run.stride

    def dispatch(self) -> None:
        """Send what permits allow; a permit is an entry here, which is enough for a sink."""
        for consumer in self.consumers.values():
            topic = consumer.topic
            while consumer.permits > 0 and topic.block < len(topic.blocks) and len(self.out) < BUFFER_BYTES:
                block, stride = topic.blocks[topic.block], topic.strides[topic.block]
                take = min(consumer.permits, (len(block) - topic.offset) // stride)
                self.out += memoryview(block)[topic.offset : topic.offset + take * stride]
                consumer.permits -= take
                topic.offset += take * stride
                if topic.offset == len(block):
                    topic.block += 1
                    topic.offset = 0


def _number(value: int | bytes) -> int:
    if not isinstance(value, int):
        raise wire.WireError("a number was expected")
    return value


def _id(entry: int) -> bytes:
    return wire.field(1, LEDGER) + wire.field(2, entry)


def _receipt(producer: int, sequence: int, entry: int) -> bytes:
    parts = wire.field(1, producer), wire.field(2, sequence), wire.field(3, _id(entry))
    return wire.frame(wire.command(Command.SEND_RECEIPT, *parts))


def _message(entry: int, consumer: int) -> bytes:
    """A MESSAGE frame's head and command; the total size is the caller's to fill in."""
    return wire.frame(wire.command(Command.MESSAGE, wire.field(1, consumer), wire.field(2, _id(entry))))


def _three_bytes(first: int, count: int) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    values = np.arange(first, first + count, dtype=np.int64)
    columns = np.empty((count, 3), np.uint8)
    columns[:, 0] = values & 0x7F | 0x80
    columns[:, 1] = values >> 7 & 0x7F | 0x80
    columns[:, 2] = values >> 14 & 0x7F
    return columns


class Sink:
    """The server; ``keep`` stores entries for consumers. Runs in a thread (tests) or a process (measurements).

    ``file``: what receipts wait for is appended to it, in pages, and synced.
    """

    def __init__(self, port: int = 0, keep: bool = True, file: Path | None = None) -> None:
        self.keep = keep
        self.unsynced = 0
        """Bytes that came and have no receipt yet."""
        self.syncs = 0
        self._file = None if file is None else os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        self._topics: dict[bytes, Topic] = {}
        self._listener = socket.create_server(("127.0.0.1", port))
        self.address = Address("127.0.0.1", int(self._listener.getsockname()[1]))
        self._stop = threading.Event()
        self._sessions: dict[socket.socket, Session] = {}

    def topic(self, name: int | bytes) -> Topic:
        if not isinstance(name, bytes):
            raise wire.WireError("a name was expected")
        return self._topics.setdefault(name, Topic())

    def stop(self) -> None:
        self._stop.set()

    def serve(self) -> None:
        selector = selectors.DefaultSelector()
        self._listener.setblocking(False)
        selector.register(self._listener, selectors.EVENT_READ)
        while not self._stop.is_set():
            for key, _ in selector.select(0.05):
                if key.fileobj is self._listener:
                    connection, _ = self._listener.accept()
                    connection.setblocking(False)
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    self._sessions[connection] = Session(self, connection)
                    selector.register(connection, selectors.EVENT_READ)
                else:
                    assert isinstance(key.fileobj, socket.socket)
                    if not self._sessions[key.fileobj].receive():
                        selector.unregister(key.fileobj)
                        self._sessions.pop(key.fileobj).socket.close()
            self._sync()
            for connection, session in self._sessions.items():
                session.dispatch()
                session.flush()
                # a socket that does not take everything is asked again when it can
                events = selectors.EVENT_READ | (selectors.EVENT_WRITE if session.out else 0)
                if selector.get_key(connection).events != events:
                    selector.modify(connection, events)
        for session in self._sessions.values():
            session.socket.close()
        self._listener.close()
        selector.close()
        if self._file is not None:
            os.close(self._file)

    def _sync(self) -> None:
        if self._file is not None and self.unsynced:
            os.write(self._file, bytes(-(-self.unsynced // PAGE) * PAGE))
            os.fdatasync(self._file)
            self.syncs += 1
        self.unsynced = 0


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--file", type=Path, help="append to it and sync before receipts")
    arguments = parser.parse_args()
    Sink(arguments.port, file=arguments.file).serve()


if __name__ == "__main__":
    main()
