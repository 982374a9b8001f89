"""One socket to one broker, for one thread: the sans-I/O client state with blocking reads and writes around it.

Bytes are read only while a caller waits: in `request`, and in `receive`, which hands over the next pushes. A PING that
arrives meanwhile is answered, and so is an AUTH_CHALLENGE, with credentials read anew. Who stays away longer than the
broker's patience (30 to 60 s) finds the connection closed, which is why readers and producers know how to go on with a
new one.

With TLS the certificate and the host's name are checked before CONNECT, which carries the credentials, is sent.

A request's answer is awaited with everything else that arrives before it kept for `receive`, in order.
"""

from __future__ import annotations

import itertools
import socket
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from magnetar.client.address import Address
from magnetar.client.advice import advice
from magnetar.client.errors import ClientError, ClientTimeoutError, ConnectionLostError, RefusedError, TlsError
from magnetar.client.handshake import (
    MAX_FRAME_SIZE,
    auth_response,
    broken,
    connect_command,
    no_pulsar,
    says_expired,
    unreachable,
)
from magnetar.model.errors import ProtocolError, ServerError
from magnetar.protocol import commands as c
from magnetar.protocol.client import ClientConnection
from magnetar.protocol.commands.names import name_of
from magnetar.runtime.clock import steady_seconds
from magnetar.security.credentials.certificate import presenting
from magnetar.security.credentials.method import NOBODY, ClientCredentials
from magnetar.security.credentials.secret import CredentialsError

if TYPE_CHECKING:
    from magnetar.security.tls.client_tls import ClientTls

Answer = TypeVar("Answer")
Read = TypeVar("Read", bytes, int)

DEFAULT_TIMEOUT: Final = 30.0
_READ_SIZE: Final = 1 << 18
_PARTS_MAX: Final = 1024
"""The number of pieces that Linux takes in one write (IOV_MAX)."""
_TLS_WRITE: Final = 1 << 18
"""Bytes of small pieces that are copied together for TLS, which has no gathering write."""


class Connection:
    """One connection to a broker, connected and greeted when it is made.

    Raises ConnectionLostError, ClientTimeoutError, RefusedError, TlsError, CredentialsError.
    """

    def __init__(
        self,
        address: Address,
        *,
        timeout: float = DEFAULT_TIMEOUT,
        credentials: ClientCredentials = NOBODY,
        proxy_to: str | None = None,
        tls: ClientTls | None = None,
    ) -> None:
        """``tls``: files and checks for an address with TLS; ``None``: the system's authorities, no own certificate."""
        self.address = address
        self.timeout = timeout
        self.max_message_size = 5 * 1024 * 1024
        self._state = ClientConnection(MAX_FRAME_SIZE)
        self._pushes: deque[c.Command] = deque()
        self._answers: dict[int, c.Command] = {}
        self._next_handle = 0
        self._credentials = credentials
        self._shown: bytes | None = None
        self.closed = False
        try:
            self._socket = socket.create_connection((address.host, address.port), timeout)
        except OSError as error:
            raise unreachable(address, error) from None
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if address.tls:
            self._secure(tls)
        elif credentials.key_pair is not None:
            self.close()
            raise TlsError(f"{credentials} is shown over TLS only; write pulsar+ssl:// and the port with TLS")
        self._greet(proxy_to)

    def _secure(self, tls: ClientTls | None) -> None:
        """Do the TLS handshake. Raises TlsError, ConnectionLostError, ClientTimeoutError."""
        from magnetar.security.tls import client_tls

        try:
            own = presenting(tls or client_tls.ClientTls(), self._credentials)
            self._socket = own.wrap(self._socket, self.address.host)
        except TimeoutError:
            self.close()
            raise ClientTimeoutError(
                f"no TLS handshake with the broker at {self.address} in {self.timeout} s"
            ) from None
        except OSError as error:
            self.close()
            raise unreachable(self.address, error) from None
        except BaseException:
            self.close()
            raise

    def _greet(self, proxy_to: str | None) -> None:
        try:
            self._shown = self._credentials.data()
            self.write(self._state.send(connect_command(self._credentials.method, self._shown, proxy_to)))
            deadline = steady_seconds() + self.timeout
            while not self._state.connected:
                if not self._read(deadline - steady_seconds()):
                    raise ClientTimeoutError(f"the broker at {self.address} did not answer CONNECT in {self.timeout} s")
                if self._pushes and isinstance(refusal := self._pushes[0], c.CommandError):
                    raise self.refused(f"the broker at {self.address} refused", refusal.error, refusal.message)
        except BaseException:
            self.close()
            raise
        greeting = self._pushes.popleft()
        if isinstance(greeting, c.CommandConnected) and greeting.max_message_size:
            self.max_message_size = greeting.max_message_size

    def new_request_id(self) -> int:
        """Return an id for the request that is sent next."""
        return self._state.new_request_id()

    def new_handle(self) -> int:
        """Return a new producer or consumer id of this connection."""
        self._next_handle += 1
        return self._next_handle - 1

    def request(self, command: c.Command, expected: type[Answer], what: str) -> Answer:
        """Send, wait for the answer; ``what`` names the request in errors."""
        request_id = _request_id(command)
        self.write(self._state.send(command))
        deadline = steady_seconds() + self.timeout
        while request_id not in self._answers:
            if not self._read(deadline - steady_seconds()):
                self._state.forget(request_id)
                raise ClientTimeoutError(f"{what}: the broker at {self.address} did not answer in {self.timeout} s")
        answer = self._answers.pop(request_id)
        if isinstance(answer, c.CommandError):
            raise self.refused(what, answer.error, answer.message, command)
        if not isinstance(answer, expected):
            raise ClientError(f"{what}: the broker answered with {name_of(type(answer))}")
        return answer

    def refused(
        self, what: str, error: ServerError, message: str | None, asked: c.Command | None = None
    ) -> RefusedError:
        """Return the error to raise about a refusal; what may not be done is followed by what would permit it."""
        return RefusedError(what, error, message, advice(error, asked, self._credentials))

    def send(self, command: c.Command) -> None:
        """Send a command that has no answer."""
        self.write(self._state.send(command))

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send prepared frames."""
        self._writing(lambda: self._socket.sendall(data))

    def write_all(self, parts: Sequence[bytes]) -> None:
        """Send prepared frames in pieces, which are not copied together but for TLS."""
        if self.address.tls:
            self._writing(lambda: self._send_joined(parts))
        else:
            self._writing(lambda: self._send_parts(deque(memoryview(part) for part in parts)))

    def _send_joined(self, parts: Sequence[bytes]) -> None:
        held: list[bytes] = []
        size = 0
        for part in parts:
            held.append(part)
            size += len(part)
            if size >= _TLS_WRITE:
                self._socket.sendall(b"".join(held))
                held, size = [], 0
        if held:
            self._socket.sendall(b"".join(held))

    def _send_parts(self, parts: deque[memoryview]) -> None:
        while parts:
            sent = self._socket.sendmsg(list(itertools.islice(parts, _PARTS_MAX)))
            while parts and sent >= len(parts[0]):
                sent -= len(parts.popleft())
            if sent:
                parts[0] = parts[0][sent:]

    def _writing(self, write: Callable[[], None]) -> None:
        if self.closed:
            raise ConnectionLostError(f"the connection to the broker at {self.address} is closed")
        try:
            self._socket.settimeout(self.timeout)
            write()
        except TimeoutError:
            self.close()
            raise ClientTimeoutError(f"the broker at {self.address} took nothing for {self.timeout} s") from None
        except OSError as error:
            raise self._broken(self._why_ended(error)) from None

    def _why_ended(self, error: OSError) -> OSError:
        """Return what a broker said before it ended the connection under our first write, else ``error``.

        With TLS 1.3 that is its refusal of the client's certificate, which has arrived by then.
        """
        if not self.address.tls or self._state.connected:
            return error
        try:
            self._socket.settimeout(0.0)
            self._socket.recv(_READ_SIZE)
        except OSError as said:
            return error if _is_empty(said) else said
        return error

    def receive(self, wait: float) -> list[c.Command]:
        """Return what the broker has sent on its own, in order; waits at most ``wait`` seconds for the first of it."""
        if not self._pushes:
            deadline = steady_seconds() + wait
            while not self._pushes and self._read(deadline - steady_seconds()):
                pass
        return self.take_pushes()

    def take_pushes(self) -> list[c.Command]:
        """Return what the broker has sent on its own and was read already."""
        pushes = list(self._pushes)
        self._pushes.clear()
        return pushes

    def take_held(self) -> bytes:
        """Return the beginning of a frame that is not whole, for a caller that reads on by `read_into`."""
        return self._state.take_held()

    def read_into(self, buffer: memoryview, wait: float) -> int:
        """Read bytes as they come, for `decode`; returns how many, 0 if none came in ``wait`` seconds."""
        return self._received(lambda: self._socket.recv_into(buffer), wait) or 0

    def read_more(self, buffer: memoryview) -> int:
        """Read what else is here already; 0 at the end of the connection too, which the next read that waits
        reports."""
        try:
            self._socket.settimeout(0.0)
            return self._socket.recv_into(buffer)
        except OSError:
            return 0

    def decode(self, data: bytes) -> list[c.Command]:
        """Decode bytes that were read by `read_into`, as `receive` would have given them."""
        self._take_in(data)
        return self.take_pushes()

    def hold(self, data: bytes) -> None:
        """Take back the beginning of a frame, the reverse of `take_held`."""
        self._take_in(data)

    def _read(self, wait: float) -> bool:
        """Take in one chunk; False if none came in ``wait`` seconds."""
        data = self._received(lambda: self._socket.recv(_READ_SIZE), wait)
        if data:
            self._take_in(data)
        return bool(data)

    def _received(self, read: Callable[[], Read], wait: float) -> Read | None:
        """Return what one read gives; None if nothing came in ``wait`` seconds."""
        if self.closed:
            raise ConnectionLostError(f"the connection to the broker at {self.address} is closed")
        try:
            self._socket.settimeout(max(wait, 0.0))
            found = read()
        except (TimeoutError, BlockingIOError):
            return None
        except OSError as error:
            if self.address.tls and _is_empty(error):
                return None
            raise self._broken(error) from None
        if not found:
            raise self._broken(None)
        return found

    def _broken(self, error: OSError | None) -> ClientError:
        """Close, and return what to raise."""
        self.close()
        return broken(self.address, error, greeted=self._state.connected)

    def _take_in(self, data: bytes) -> None:
        try:
            for command in self._state.receive(data):
                self._arrived(command)
        except ProtocolError as error:
            self.close()
            raise no_pulsar(self.address, data, error, greeted=self._state.connected) from None

    def _arrived(self, command: c.Command) -> None:
        if type(command) is c.CommandMessage:
            self._pushes.append(command)
            return
        arrival = self._state.match(command)
        if arrival is None or isinstance(command, c.CommandPong):
            return
        if isinstance(command, c.CommandPing):
            self.write(self._state.send(c.CommandPong()))
        elif isinstance(command, c.CommandAuthChallenge):
            self._log_in_again(command)
        elif arrival.request is None:
            self._pushes.append(command)
        elif not isinstance(command, c.CommandProducerSuccess) or command.producer_ready:
            self._answers[_request_id(arrival.request)] = command

    def _log_in_again(self, asked: c.CommandAuthChallenge) -> None:
        """Show credentials on the open connection. Raises ConnectionLostError: another connection may have them."""
        try:
            self._shown = self._credentials.data(self._shown if says_expired(asked) else None)
            method = self._credentials.method
        except CredentialsError as error:
            self.close()
            raise ConnectionLostError(
                f"the broker at {self.address} asks for credentials again, and there are none: {error}"
            ) from None
        self.write(self._state.send(auth_response(method, self._shown)))

    def close(self) -> None:
        """Close the socket, with which the broker ends all its producers and consumers; may be called twice."""
        if not self.closed:
            self.closed = True
            if hasattr(self, "_socket"):
                self._socket.close()


def _is_empty(error: OSError) -> bool:
    """Whether a read by TLS that does not wait found no whole record."""
    import ssl

    return isinstance(error, ssl.SSLWantReadError | ssl.SSLWantWriteError)


def _request_id(request: c.Command) -> int:
    """Return the request id of a command that is answered."""
    number: int = getattr(request, "request_id")  # noqa: B009 - the union of all commands does not have it
    return number
