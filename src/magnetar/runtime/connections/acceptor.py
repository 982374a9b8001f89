"""One listening socket: accepts connections a few at a time, counts them, and refuses those above a limit.

The event loop's own servers accept everything that the kernel holds before anything could count it; the last
descriptors are then gone when a file has to be opened. Here a connection is counted when it is accepted. One that is
refused receives the reason in a few bytes before its socket is closed, and never has a transport. When the system
itself has no descriptor left, accepting pauses for a second.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Final, NamedTuple

from magnetar.runtime.connections.descriptors import Descriptors
from magnetar.runtime.log import RateLimitedLog
from magnetar.runtime.tasks import TaskGroup

log = logging.getLogger(__name__)

ACCEPTED_PER_TURN: Final = 32
_REST_SECONDS: Final = 1.0
_DRAIN_BYTES: Final = 1 << 16

Release = Callable[[], None]
Make = Callable[[Release], asyncio.Protocol]
"""Builds the protocol of a connection; the argument is to be called when the connection is lost."""


class Entrance(NamedTuple):
    """One listening socket and, with TLS, what goes around each of its connections."""

    name: str
    listening: socket.socket
    around: Callable[[Make], Make] | None = None
    """``None``: plain text."""
    watch: Callable[[Callable[[], None], Callable[[], None]], None] | None = None
    """Takes what is to be called when no more connections are wanted, and when they are wanted again."""

    @property
    def port(self) -> int:
        """The port that it is bound to."""
        port: int = self.listening.getsockname()[1]
        return port


class ConnectionLimit:
    """Counts connections in total and by address against their limits; 0 is no limit."""

    def __init__(self, most: int, most_per_address: int, descriptors: Descriptors, spare: int = 0) -> None:
        """``spare``: descriptors that are left to other acceptors."""
        self.most = most
        self.count = 0
        self.refused = 0
        """How many were refused since the start."""
        self._most_per_address = most_per_address
        self._descriptors = descriptors
        self._spare = spare
        self._by_address: dict[str, int] = {}

    def admit(self, address: str) -> str | None:
        """Count one more connection, or return the reason why it is refused."""
        why = self._refusal(address)
        if why is not None:
            self.refused += 1
            return why
        self.count += 1
        self._descriptors.connections += 1
        self._by_address[address] = self._by_address.get(address, 0) + 1
        return None

    def _refusal(self, address: str) -> str | None:
        # they begin as Apache Pulsar's do
        if self.most and self.count >= self.most:
            return f"Reached the maximum number of connections: {self.most}"
        if self._most_per_address and self._by_address.get(address, 0) >= self._most_per_address:
            return f"Reached the maximum number of connections on address {address}: {self._most_per_address}"
        if self._descriptors.left() <= self._spare:
            limit = self._descriptors.limit
            return f"Reached the maximum number of connections: the broker has {limit} file descriptors (ulimit -n)"
        return None

    def release(self, address: str) -> None:
        """Count one connection less."""
        self.count -= 1
        self._descriptors.connections -= 1
        left = self._by_address.get(address, 0) - 1
        if left > 0:
            self._by_address[address] = left
        else:
            self._by_address.pop(address, None)


class Acceptor:
    """Owner of a listening socket."""

    def __init__(
        self,
        name: str,
        listening: socket.socket,
        connection_limit: ConnectionLimit,
        make: Make,
        refusal: Callable[[str], bytes],
    ) -> None:
        self.connection_limit = connection_limit
        self.port: int = listening.getsockname()[1]
        self._name = name
        self._socket = listening
        self._make = make
        self._refusal = refusal
        self._tasks = TaskGroup(name)
        self._limited = RateLimitedLog(log)
        self._rest: asyncio.TimerHandle | None = None
        self._open = False
        self._held = False

    @staticmethod
    def at(
        entrance: Entrance, connection_limit: ConnectionLimit, make: Make, refusal: Callable[[str], bytes]
    ) -> Acceptor:
        """Return the owner of an entrance; with TLS a client that is one too many gets no reason."""
        if entrance.around is not None:
            make, refusal = entrance.around(make), _no_words
        acceptor = Acceptor(entrance.name, entrance.listening, connection_limit, make, refusal)
        if entrance.watch is not None:
            entrance.watch(acceptor.hold, acceptor.go_on)
        return acceptor

    def open(self) -> None:
        """Begin to accept connections."""
        self._socket.setblocking(False)
        self._open = True
        if not self._held:
            asyncio.get_running_loop().add_reader(self._socket.fileno(), self._accept)

    def hold(self) -> None:
        """Leave new connections to the system for a while."""
        self._held = True
        if self._open:
            asyncio.get_running_loop().remove_reader(self._socket.fileno())

    def go_on(self) -> None:
        """Accept connections again."""
        self._held = False
        if self._open and self._rest is None:
            asyncio.get_running_loop().add_reader(self._socket.fileno(), self._accept)

    def close(self) -> None:
        """Accept no more connections; those that are open stay open."""
        if self._open:
            self._open = False
            asyncio.get_running_loop().remove_reader(self._socket.fileno())
        if self._rest is not None:
            self._rest.cancel()
        self._socket.close()

    def _accept(self) -> None:
        for _ in range(ACCEPTED_PER_TURN):
            try:
                client, address = self._socket.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionError:
                continue  # the client left before it was accepted
            except OSError as error:
                self._pause(error)
                return
            client.setblocking(False)
            host = str(address[0])
            why = self.connection_limit.admit(host)
            if why is None:
                self._tasks.start(self._admit(client, host), "accept")
            else:
                self._limited.warning(why, "%s: %s is turned away: %s", self._name, host, why)
                self._turn_away(client, why)

    async def _admit(self, client: socket.socket, host: str) -> None:
        counted = True

        def release() -> None:
            nonlocal counted
            if counted:
                counted = False
                self.connection_limit.release(host)

        try:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await asyncio.get_running_loop().connect_accepted_socket(lambda: self._make(release), client)
        except OSError as error:
            log.debug("%s: %s left at once: %s", self._name, host, error)
            client.close()
            release()
        except BaseException:
            client.close()
            release()
            raise

    def _turn_away(self, client: socket.socket, why: str) -> None:
        try:
            client.send(self._refusal(why))
            client.shutdown(socket.SHUT_WR)
            # unread bytes would make the system reset the connection, and our answer with it
            client.recv(_DRAIN_BYTES)
        except OSError:
            pass
        finally:
            client.close()

    def _pause(self, error: OSError) -> None:
        """Stop accepting for a second: the system has no descriptor or no memory for one more connection."""
        loop = asyncio.get_running_loop()
        self._limited.warning(
            "rest", "%s: no connection can be accepted, trying again in a second: %s", self._name, error
        )
        loop.remove_reader(self._socket.fileno())
        self._rest = loop.call_later(_REST_SECONDS, self._resume)

    def _resume(self) -> None:
        self._rest = None
        if self._open and not self._held:
            asyncio.get_running_loop().add_reader(self._socket.fileno(), self._accept)


def _no_words(why: str) -> bytes:
    return b""


def listen(host: str, port: int, backlog: int) -> socket.socket:
    """Bind and listen; port 0 is any free one. Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=backlog)
