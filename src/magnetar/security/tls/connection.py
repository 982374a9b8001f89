"""One connection with TLS: the protocol of a plain transport, and the transport of the protocol that it protects.

OpenSSL works on two buffers in memory. What a wake-up brings is decrypted in one go and handed on in one piece; what is
written leaves in one write of the plain transport. Nothing is held back here, so the bytes that the client has not
taken are those of the plain transport. The protected protocol is made when the handshake is finished.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Iterable
from typing import Any, Final, cast

from typing_extensions import override

from magnetar.runtime.clock import SystemClock
from magnetar.runtime.connections.acceptor import Make, Release
from magnetar.security.tls.failed_handshakes import failure, is_tls, plain_text
from magnetar.security.tls.handshakes import Handshakes
from magnetar.security.tls.server_tls import ServerTls

RECORD: Final = 1 << 14
"""Bytes of the largest TLS record."""
SLICE: Final = 2 * RECORD
"""OpenSSL's buffers never shrink, so they are filled no further; smaller slices take more time."""
TAKEN: Final = 1 << 18
"""Bytes that are decrypted before they are handed on."""
_room: Final = memoryview(bytearray(TAKEN + 2 * RECORD))
"""Where bytes are decrypted; one for all connections, since all of them live on one event loop."""
_clock: Final = SystemClock()
HANDSHAKE_BYTES_MAX: Final = 1 << 17
"""Bytes of a handshake that is not finished: a chain of certificates fits many times."""
AROUND: Final = {"TLSv1.3": 22}
"""Bytes that a record takes besides its data, by version."""
AROUND_MOST: Final = 96
"""The same before TLS 1.3: header, initialization vector, MAC and padding."""
HIDDEN_MAX: Final = 3 << 14
"""Bytes of records without data, such as changes of keys: each costs a derivation of keys and brings nothing.

A record that is not whole yet counts until it is. Data pays back a sixteenth of its length.
"""
ANSWERS_MAX: Final = 1 << 10
"""Bytes of answers to changes of keys: 37 of them, and as many again with each GB of data; clients change keys after
many GB."""


SUSPECT: Final = RECORD + (1 << 10)
"""So many are more than one record that is not whole yet: what follows is worked on piece by piece, in turns."""
PIECE: Final = SLICE // 4
"""Bytes of such a piece; some 300 changes of keys, which are a few milliseconds."""


class TlsConnection(asyncio.Protocol, asyncio.Transport):
    """The server's side of one connection."""

    def __init__(self, port_name: str, tls: ServerTls, handshakes: Handshakes, make: Make, release: Release) -> None:
        """``port_name``: what the log calls the port; ``release``: called when the connection is lost."""
        super().__init__()
        self._port = port_name
        self._tls = tls
        self._handshakes = handshakes
        self._make = make
        self._release = release
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._context = tls.context()
        self._ssl = self._context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._plain: asyncio.Transport
        self._protocol: asyncio.Protocol | None = None
        self._beginning = b""
        self._received = 0
        self._early = b""
        """What came beyond HANDSHAKE_BYTES_MAX before the last step: the rest of a request, or no handshake at all."""
        self._arrived = False
        self._closing = False
        self._around = AROUND_MOST
        self._hidden = 0
        self._answers = 0.0
        self._held = b""
        """What waits for its turn, because this connection or another one sends much that brings nothing."""
        self._paused = False

    # the protocol of the plain transport -------------------------------------------------------------------------

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do not derive from asyncio's
        self._plain = cast(asyncio.Transport, transport)
        self._handshakes.began(self)

    @override
    def data_received(self, data: bytes) -> None:
        if self._closing:
            return
        protocol = self._protocol
        if protocol is None:
            self._shake(data)
            return
        if self._held or self._hidden > SUSPECT or self._handshakes.burdened:
            self._hold(data)
        elif len(data) <= TAKEN:
            self._decrypt(protocol, data)
        else:
            for start in range(0, len(data), TAKEN):
                if self._held:
                    self._held += data[start:]
                    return
                if self._closing:
                    return
                self._decrypt(protocol, data[start : start + TAKEN])

    def _hold(self, data: bytes) -> None:
        """Let the bytes wait for a turn, and read no more until all of them had one."""
        self._held += data
        self._plain.pause_reading()
        self._await_turn()

    def _await_turn(self) -> None:
        if not self._arrived:
            self._arrived = True
            self._handshakes.arrived(self)

    def _go_on(self, protocol: asyncio.Protocol) -> None:
        """Work on a piece of what waits."""
        piece, self._held = self._held[:PIECE], self._held[PIECE:]
        self._decrypt(protocol, piece)
        if self._closing or self._paused:
            return
        if self._held:
            self._await_turn()
        else:
            self._plain.resume_reading()

    def _decrypt(self, protocol: asyncio.Protocol, data: bytes) -> None:
        """Hand on what the whole records hold, in one piece."""
        try:
            self._decrypt_all(protocol, data)
        except ssl.SSLError as error:
            self._complain("broken", f"what it sends is no TLS ({error.reason})")
            self._flush()
            self.abort()

    def _decrypt_all(self, protocol: asyncio.Protocol, data: bytes) -> None:
        incoming, read = self._incoming, cast(Callable[[int, memoryview], int], self._ssl.read)
        view, size, ended = memoryview(data), 0, False
        around, hidden = self._around, self._hidden
        for start in range(0, len(data), SLICE):
            hidden += incoming.write(view[start : start + SLICE])
            before = size
            try:
                while incoming.pending and not ended:
                    count = read(RECORD, _room[size : size + RECORD])
                    size += count
                    hidden -= around
                    ended = not count
            except ssl.SSLWantReadError:
                pass
            hidden -= size - before + (size - before >> 4)
            if hidden < 0:
                hidden = 0
            if hidden > HIDDEN_MAX or (self._outgoing.pending and not self._may_answer()):
                self._complain("keys", "it changes keys or sends records without data all the time")
                self.abort()
                return
            if hidden > SUSPECT:
                self._handshakes.burden()
                if start + SLICE < len(data):
                    self._hold(data[start + SLICE :])
                    break
        self._hidden = hidden
        if self._answers:
            self._answers = max(0.0, self._answers - size * ANSWERS_MAX / (1 << 30))
        if size:
            protocol.data_received(bytes(_room[:size]))
        if ended:
            self.close()

    def _may_answer(self) -> bool:
        """Send the answers to changes of keys, unless there are too many."""
        self._answers += self._outgoing.pending
        self._flush()
        return self._answers <= ANSWERS_MAX

    def _shake(self, data: bytes) -> None:
        if self._received < 5:
            self._beginning += data[:5]
            if not is_tls(self._beginning):
                self.give_up(f"it speaks {plain_text(self._beginning)} to a port with TLS", "plain")
                return
        self._received += len(data)
        if self._received > HANDSHAKE_BYTES_MAX:
            # whether the handshake ends in them is seen in the next step, and until then no more are read
            self._early += data
            self._plain.pause_reading()
        else:
            self._incoming.write(data)
        self._await_turn()

    def step(self) -> None:
        """Do what the bytes that have come allow."""
        self._arrived = False
        if self._closing:
            return
        if self._protocol is not None:
            self._go_on(self._protocol)
            return
        try:
            self._ssl.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            if self._early:
                self.give_up(f"more than {HANDSHAKE_BYTES_MAX} bytes and no end of the TLS handshake", "large")
            return
        except ssl.SSLError as error:
            self._flush()  # the alert that gives the client the reason
            self.give_up(failure(error), error.reason or "handshake")
            return
        self._flush()
        agreed = self._ssl.cipher()
        if agreed is None or not self._tls.offer.allows(agreed[0]):
            self.give_up(f"it agreed on {agreed and agreed[0]} only, which tlsCiphers leaves out", "cipher")
            return
        if self._ssl.session_reused and self._expired():
            self.give_up("it resumed a session whose client certificate has expired", "expired")
            return
        self._handshakes.ended(self, well=True)
        self._around = AROUND.get(self._ssl.version() or "", AROUND_MOST)
        early, self._early = self._early, b""
        if early:
            self._plain.resume_reading()
        protocol = self._protocol = self._make(self._release)
        protocol.connection_made(self)
        if early or self._incoming.pending:
            # what came after the handshake is decrypted slice by slice like all that follows
            self.data_received(self._incoming.read() + early)

    def _expired(self) -> bool:
        """Whether the client's certificate does not count any more, which OpenSSL does not ask in resumed sessions."""
        shown = self._ssl.getpeercert()
        if not shown:
            return False
        return ssl.cert_time_to_seconds(str(shown["notAfter"])) * 1000 < _clock.now_ms()

    def give_up(self, why: str, kind: str = "handshake") -> None:
        """End a connection whose handshake is not finished."""
        if not self._closing:
            self._closing = True
            self._complain(kind, why)
            self._plain.close()

    def _complain(self, kind: str, why: str) -> None:
        peer = self._plain.get_extra_info("peername") or ("?", 0)
        complaints = self._handshakes.complaints
        complaints.warning(f"{self._port} {kind}", "%s: closing /%s:%s: %s", self._port, peer[0], peer[1], why)

    @override
    def pause_writing(self) -> None:
        if self._protocol is not None:
            self._protocol.pause_writing()

    @override
    def resume_writing(self) -> None:
        if self._protocol is not None:
            self._protocol.resume_writing()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if self._protocol is None and self._received and not self._closing:
            self._complain("left", "it left in the TLS handshake; does it trust this broker's certificate?")
        self._closing = True
        self._handshakes.ended(self, well=False)
        protocol, self._protocol = self._protocol, None
        if protocol is None:
            self._release()
        else:
            protocol.connection_lost(exc)

    # the transport of the protected protocol ---------------------------------------------------------------------

    def _flush(self) -> None:
        data = self._outgoing.read()
        if data:
            self._plain.write(data)

    @override
    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        if self._closing or not data:
            return
        if len(data) <= SLICE:
            self._ssl.write(cast(bytes, data))
            self._plain.write(self._outgoing.read())
        else:
            records: list[bytes] = []
            self._encrypt(memoryview(data), records)
            self._plain.writelines(records)

    def _encrypt(self, data: memoryview[Any], records: list[bytes]) -> None:
        write, read = self._ssl.write, self._outgoing.read
        for start in range(0, len(data), SLICE):
            write(cast(bytes, data[start : start + SLICE]))
            records.append(read())

    @override
    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview[Any]]) -> None:
        if self._closing:
            return
        records: list[bytes] = []
        small: list[Any] = []
        size = 0
        for part in list_of_data:
            if size + len(part) > SLICE:
                if small:
                    self._encrypt(memoryview(b"".join(small)), records)
                    small, size = [], 0
                if len(part) > SLICE:
                    self._encrypt(memoryview(part), records)
                    continue
            small.append(part)
            size += len(part)
        if small:
            self._encrypt(memoryview(b"".join(small)), records)
        self._plain.writelines(records)

    @override
    def close(self) -> None:
        if self._closing:
            return
        self._closing = True
        try:
            self._ssl.unwrap()
        except ssl.SSLError:
            pass  # it says goodbye and does not wait for the answer
        self._flush()
        self._plain.close()

    @override
    def abort(self) -> None:
        self._closing = True
        self._plain.abort()

    @override
    def is_closing(self) -> bool:
        return self._closing or self._plain.is_closing()

    @override
    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Add ``ssl_object``, ``sslcontext``, ``cipher`` and ``peercert`` to what the plain transport knows."""
        if name == "ssl_object":
            return self._ssl
        if name == "sslcontext":
            return self._context
        if name == "cipher":
            return self._ssl.cipher()
        if name == "peercert":
            return self._ssl.getpeercert()
        return self._plain.get_extra_info(name, default)

    @override
    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = cast(asyncio.Protocol, protocol)

    @override
    def get_protocol(self) -> asyncio.BaseProtocol:
        assert self._protocol is not None
        return self._protocol

    @override
    def is_reading(self) -> bool:
        return self._plain.is_reading()

    @override
    def pause_reading(self) -> None:
        self._paused = True
        self._plain.pause_reading()

    @override
    def resume_reading(self) -> None:
        self._paused = False
        if self._held:
            self._await_turn()
        else:
            self._plain.resume_reading()

    @override
    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._plain.set_write_buffer_limits(high, low)

    @override
    def get_write_buffer_size(self) -> int:
        return self._plain.get_write_buffer_size()

    @override
    def can_write_eof(self) -> bool:
        return False


def secured(port_name: str, tls: ServerTls, handshakes: Handshakes, make: Make) -> Make:
    """Return ``make`` with TLS around each connection."""
    return lambda release: TlsConnection(port_name, tls, handshakes, make, release)
