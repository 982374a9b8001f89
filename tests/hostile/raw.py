"""Frames without a client's scruples: any command with any content, over one blocking socket."""

from __future__ import annotations

import socket
import struct
import time
from typing import Any, Final

from magnetar.protocol.generated import pulsar_pb2 as pb
from magnetar.testing.rawclient import make_entry

HOST: Final = "127.0.0.1"
TOPIC: Final = "persistent://public/default/"
_UNASKED: Final = (pb.BaseCommand.CLOSE_CONSUMER, pb.BaseCommand.ACTIVE_CONSUMER_CHANGE, pb.BaseCommand.MESSAGE)


def field_of(kind: str) -> str:
    """The field of BaseCommand that holds a command: ``GET_TOPICS_OF_NAMESPACE`` is in getTopicsOfNamespace."""
    number = pb.BaseCommand.Type.Value(kind)
    return pb.BaseCommand.DESCRIPTOR.fields_by_number[number].name


def command(kind: str, **fields: Any) -> bytes:
    """One frame with a command; fields are given as protobuf takes them."""
    base = pb.BaseCommand(type=pb.BaseCommand.Type.Value(kind))
    part = getattr(base, field_of(kind))
    part.SetInParent()
    for name, value in fields.items():
        target = getattr(part, name)
        if isinstance(value, list):
            target.extend(value)
        elif isinstance(value, dict):
            target.CopyFrom(type(target)(**value))
        else:
            setattr(part, name, value)
    return frame(base.SerializePartialToString())


def frame(body: bytes, entry: bytes = b"") -> bytes:
    """Both sizes before a command's bytes, and an entry after it."""
    return struct.pack(">II", 4 + len(body) + len(entry), len(body)) + body + entry


def send_frame(producer_id: int, sequence_id: int, entry: bytes, **fields: Any) -> bytes:
    """A SEND with its entry."""
    base = pb.BaseCommand(type=pb.BaseCommand.SEND)
    base.send.producer_id = producer_id
    base.send.sequence_id = sequence_id
    for name, value in fields.items():
        setattr(base.send, name, value)
    return frame(base.SerializePartialToString(), entry)


class Raw:
    """One connection; ``greet=False`` says nothing, not even CONNECT."""

    def __init__(self, port: int, *, greet: bool = True, timeout: float = 30.0) -> None:
        self.socket = socket.create_connection((HOST, port), timeout=timeout)
        self._buffer = b""
        self._next_id = 0
        if greet:
            self.say(command("CONNECT", client_version="hostile", protocol_version=21))
            assert self.hear().type == pb.BaseCommand.CONNECTED

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go without a word."""
        self.socket.close()

    def say(self, *frames: bytes) -> None:
        """All of it in one write. Raises ConnectionError if the broker has closed the connection."""
        self.socket.sendall(b"".join(frames))

    def hear(self) -> pb.BaseCommand:
        """The next command that is not a PING. Raises ConnectionError at the end of the connection."""
        while True:
            (size,) = struct.unpack(">I", self._take(4))
            body = self._take(size)
            (length,) = struct.unpack_from(">I", body)
            heard = pb.BaseCommand.FromString(body[4 : 4 + length])
            if heard.type != pb.BaseCommand.PING:
                return heard
            self.say(command("PONG"))

    def until(self, kind: int) -> pb.BaseCommand:
        """The next command of that type; others on the way are dropped."""
        while (heard := self.hear()).type != kind:
            pass
        return heard

    def _take(self, size: int) -> bytes:
        while len(self._buffer) < size:
            data = self.socket.recv(1 << 20)
            if not data:
                raise ConnectionError("the broker closed the connection")
            self._buffer += data
        taken, self._buffer = self._buffer[:size], self._buffer[size:]
        return taken

    def ended(self, seconds: float) -> bool:
        """Read and drop for so long at most; whether the broker closed the connection."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self.socket.settimeout(left)
            try:
                if not self.socket.recv(1 << 20):
                    return True
            except TimeoutError:
                return False
            except ConnectionError:
                return True
        return False

    def new_id(self) -> int:
        """A request, producer or consumer id of this connection's own."""
        self._next_id += 1
        return self._next_id

    def ask(self, kind: str, **fields: Any) -> pb.BaseCommand:
        """A command with a request id, and the next thing heard that the broker does not say unasked."""
        self.say(command(kind, request_id=self.new_id(), **fields))
        while (heard := self.hear()).type in _UNASKED:
            pass
        return heard

    def producer(self, topic: str) -> int:
        """Its id. Raises AssertionError if it is refused."""
        identity = self.new_id()
        heard = self.ask("PRODUCER", topic=topic, producer_id=identity)
        assert heard.type == pb.BaseCommand.PRODUCER_SUCCESS, heard
        return identity

    def consumer(self, topic: str, subscription: str, kind: int = pb.CommandSubscribe.Shared, **fields: Any) -> int:
        """Its id. Raises AssertionError if it is refused."""
        identity = self.new_id()
        heard = self.ask(
            "SUBSCRIBE", topic=topic, subscription=subscription, subType=kind, consumer_id=identity, **fields
        )
        assert heard.type == pb.BaseCommand.SUCCESS, heard
        return identity

    def publish(self, producer: int, count: int, payload: bytes = b"m") -> None:
        """So many messages, each receipted."""
        self.say(
            *(send_frame(producer, n, make_entry(payload, producer="hostile", sequence_id=n)) for n in range(count))
        )
        for _ in range(count):
            self.until(pb.BaseCommand.SEND_RECEIPT)
