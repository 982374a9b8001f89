"""A raw connection to a broker, blocking, for one thread.

Frames are put together and taken apart here rather than by the product's own codec: a probe must be able to send what
the codec refuses, and an error shared by our broker and our codec must not hide itself. Commands are given by the name
of their type and the fields of their message as keywords: ``wire.send("FLOW", consumer_id=1, messagePermits=10)``.

Frames that a caller did not wait for stay queued in arrival order.
"""

from __future__ import annotations

import contextlib
import queue
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType

import google_crc32c
from google.protobuf.message import DecodeError, Message

from magnetar.protocol.generated import pulsar_pb2 as schema
from tests.conformance.answers import Json

MAGIC_CHECKSUM = 0x0E01
MAGIC_BROKER_ENTRY = 0x0E02
ANSWER_SECONDS_MAX = 15.0
QUIET_SECONDS = 0.4
PROTOCOL_VERSION = 21

FIELDS = schema.BaseCommand.DESCRIPTOR.fields_by_number


class ClosedError(Exception):
    """The broker closed the connection."""


class SilentError(Exception):
    """The broker did not answer in time."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame: the command's type, its message and, for MESSAGE, the bytes after it."""

    kind: str
    body: Message
    headers: bytes = b""

    def get(self, name: str) -> Json:
        value: Json = getattr(self.body, name)
        return value

    def has(self, name: str) -> bool:
        return self.body.HasField(name)


@dataclass(frozen=True, slots=True)
class Entry:
    """What a producer sent: metadata, payload, and whether the checksum before it is right."""

    metadata: schema.MessageMetadata
    payload: bytes
    checksum_right: bool

    def texts(self) -> list[str]:
        """The messages inside, in order: one, or those of a batch."""
        if not self.metadata.HasField("num_messages_in_batch"):
            return [self.payload.decode(errors="replace")]
        texts, at = [], 0
        for _ in range(self.metadata.num_messages_in_batch):
            (size,) = struct.unpack_from(">I", self.payload, at)
            single = schema.SingleMessageMetadata.FromString(self.payload[at + 4 : at + 4 + size])
            at += 4 + size
            texts.append(self.payload[at : at + single.payload_size].decode(errors="replace"))
            at += single.payload_size
        return texts


def command(kind: str, **fields: Json) -> bytes:
    """A serialised command of that type; its fields as keywords, messages as dicts, enums by name."""
    base = schema.BaseCommand(type=schema.BaseCommand.Type.Value(kind))
    name = FIELDS[base.type].name
    inner: Message = getattr(base, name)
    inner.SetInParent()
    inner.MergeFrom(type(inner)(**fields))
    return base.SerializePartialToString()


def frame(data: bytes, rest: bytes = b"") -> bytes:
    return struct.pack(">II", 4 + len(data) + len(rest), len(data)) + data + rest


def entry(payload: bytes, *, checksum: int | None = None, magic: bool = True, **metadata: Json) -> bytes:
    """What follows the command in a SEND: checksum (right unless given), metadata, payload."""
    fields: dict[str, Json] = {"producer_name": "p", "sequence_id": 0, "publish_time": int(time.time() * 1000)}
    head = schema.MessageMetadata(**{**fields, **metadata}).SerializeToString()
    body = struct.pack(">I", len(head)) + head + payload
    return checked(body, checksum) if magic else body


def checked(body: bytes, checksum: int | None = None) -> bytes:
    """Metadata and payload behind their checksum: the right one unless another is given."""
    value = google_crc32c.value(body) if checksum is None else checksum
    return struct.pack(">HI", MAGIC_CHECKSUM, value) + body


def batch(messages: Sequence[str]) -> bytes:
    """The payload of a batch that holds these messages."""
    parts = []
    for text in messages:
        data = text.encode()
        head = schema.SingleMessageMetadata(payload_size=len(data)).SerializeToString()
        parts.append(struct.pack(">I", len(head)) + head + data)
    return b"".join(parts)


def parse_entry(headers: bytes) -> Entry:
    """Take apart what follows the command in a MESSAGE."""
    (magic,) = struct.unpack_from(">H", headers)
    if magic == MAGIC_BROKER_ENTRY:
        (size,) = struct.unpack_from(">I", headers, 2)
        return parse_entry(headers[6 + size :])
    right = False
    if magic == MAGIC_CHECKSUM:
        (value,) = struct.unpack_from(">I", headers, 2)
        headers = headers[6:]
        right = value == google_crc32c.value(headers)
    (size,) = struct.unpack_from(">I", headers)
    metadata = schema.MessageMetadata.FromString(headers[4 : 4 + size])
    return Entry(metadata, headers[4 + size :], right)


def parse(data: bytes) -> Frame:
    (size,) = struct.unpack_from(">I", data)
    try:
        base = schema.BaseCommand.FromString(data[4 : 4 + size])
    except DecodeError as error:
        raise AssertionError(f"the broker sent a frame that does not parse: {data[:64].hex()}") from error
    kind = schema.BaseCommand.Type.Name(base.type)
    return Frame(kind, getattr(base, FIELDS[base.type].name), data[4 + size :])


class Wire:
    """One connection. Not connected in Pulsar's sense until `connect` was called.

    A thread of its own reads it, so that the broker's PINGs are answered while the probe looks elsewhere: a broker that
    wants to know whether a connection is still alive must not find it dead (rule 5.3.1). `deaf` stops that.
    """

    def __init__(self, raw: socket.socket) -> None:
        self.socket = raw
        self.queued: deque[Frame] = deque()
        self.requests = 0
        self.deaf = False
        self._arrived: queue.Queue[Frame | None] = queue.Queue()
        self._ended = False
        self._sending = threading.Lock()
        threading.Thread(target=self._read, daemon=True).start()

    @classmethod
    def open(cls, address: tuple[str, int]) -> Wire:
        raw = socket.create_connection(address, timeout=ANSWER_SECONDS_MAX)
        raw.settimeout(None)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return cls(raw)

    def __enter__(self) -> Wire:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        # without the shutdown the reading thread would keep the connection open
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()

    def _read(self) -> None:
        """Everything that arrives, until the end; runs in the thread."""
        received = bytearray()
        while True:
            try:
                data = self.socket.recv(1 << 20)
            except OSError:
                data = b""
            if not data:
                self._arrived.put(None)
                return
            received += data
            while len(received) >= 4:
                (total,) = struct.unpack_from(">I", received)
                if len(received) < 4 + total:
                    break
                got = parse(bytes(received[4 : 4 + total]))
                del received[: 4 + total]
                if got.kind != "PING":
                    self._arrived.put(got)
                elif not self.deaf:
                    self.send("PONG")

    def write(self, data: bytes) -> None:
        """Bytes as they are. A broker that closed already is noticed when reading."""
        with self._sending, contextlib.suppress(OSError):
            self.socket.sendall(data)

    def send(self, kind: str, **fields: Json) -> None:
        self.write(frame(command(kind, **fields)))

    def connect(self, **fields: Json) -> Frame:
        """The handshake."""
        self.send("CONNECT", **{"client_version": "oracle", "protocol_version": PROTOCOL_VERSION, **fields})
        return self.receive("CONNECTED")

    def next(self, seconds: float = ANSWER_SECONDS_MAX) -> Frame:
        """The next frame in arrival order, queued ones first."""
        if self.queued:
            return self.queued.popleft()
        if self._ended:
            raise ClosedError("connection closed")
        try:
            got = self._arrived.get(timeout=max(seconds, 0.001))
        except queue.Empty as error:
            raise SilentError("no frame in time") from error
        if got is None:
            self._ended = True
            raise ClosedError("connection closed")
        return got

    def receive(self, *kinds: str, seconds: float = ANSWER_SECONDS_MAX) -> Frame:
        """The next frame of one of these types; others stay queued."""
        deadline = time.monotonic() + seconds
        passed: deque[Frame] = deque()
        try:
            while True:
                got = self.next(max(deadline - time.monotonic(), 0.0))
                if got.kind in kinds:
                    return got
                passed.append(got)
        finally:
            self.queued.extendleft(reversed(passed))

    def request(self, kind: str, **fields: Json) -> Frame:
        """Send a command with a request id of its own and return the frame that answers it."""
        self.requests += 1
        self.send(kind, request_id=self.requests, **fields)
        passed: deque[Frame] = deque()
        deadline = time.monotonic() + ANSWER_SECONDS_MAX
        try:
            while True:
                got = self.next(max(deadline - time.monotonic(), 0.0))
                if "request_id" in got.body.DESCRIPTOR.fields_by_name and got.get("request_id") == self.requests:
                    return got
                passed.append(got)
        finally:
            self.queued.extendleft(reversed(passed))

    def rest(self, quiet: float = QUIET_SECONDS) -> Iterator[Frame]:
        """Everything that still comes until nothing came for ``quiet`` seconds; ends silently when it closed.

        A broker on a busy machine may be silent that long before it has read the last command: a PING shows that it
        has, unless this side is deaf.
        """
        asked = came = False
        with contextlib.suppress(SilentError, ClosedError):
            while True:
                try:
                    got = self.next(ANSWER_SECONDS_MAX if asked else quiet)
                except SilentError:
                    if self.deaf or asked:
                        return
                    self.send("PING")
                    asked, came = True, False
                    continue
                if asked and got.kind == "PONG":
                    if not came:
                        return
                    asked = False
                    continue
                came = True
                yield got

    def closed(self, seconds: float = 3.0) -> bool:
        """Whether the broker closes the connection by then; frames that come first stay queued."""
        passed: deque[Frame] = deque()
        deadline = time.monotonic() + seconds
        try:
            while True:
                passed.append(self.next(max(deadline - time.monotonic(), 0.0)))
        except SilentError:
            return False
        except ClosedError:
            return True
        finally:
            self.queued.extend(passed)

    def alive(self) -> bool:
        """Whether a PING is still answered: everything sent before it was read by then."""
        self.send("PING")
        try:
            self.receive("PONG")
        except (SilentError, ClosedError):
            return False
        return True

    def publish(self, producer_id: int, sequence: int, text: str | bytes, **metadata: Json) -> None:
        """One message, without waiting for its receipt."""
        payload = text.encode() if isinstance(text, str) else text
        self.write(
            frame(
                command("SEND", producer_id=producer_id, sequence_id=sequence),
                entry(payload, sequence_id=sequence, **metadata),
            )
        )

    def publish_batch(
        self, producer_id: int, sequence: int, messages: Sequence[str], *, counted: bool = True, **metadata: Json
    ) -> None:
        """Send a batch; its SEND names the number of messages if it is ``counted``."""
        count = len(messages)
        named = {"num_messages": count} if counted else {}
        self.write(
            frame(
                command("SEND", producer_id=producer_id, sequence_id=sequence, **named),
                entry(batch(messages), sequence_id=sequence, num_messages_in_batch=count, **metadata),
            )
        )
