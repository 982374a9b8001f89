"""One listening socket: accepts connections a few at a time, counts them, and turns away who is one too many.

The event loop's own servers accept whatever the kernel holds before anybody could count it; then the last descriptors
are gone when a file has to be opened. Here a connection is counted when it is accepted, and who is refused hears why in
a few bytes before the socket is closed, without ever having had a transport. When the system itself has none left,
the door rests for a second.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Final

from magnetar.runtime.descriptors import Descriptors
from magnetar.runtime.log import Limited
from magnetar.runtime.tasks import TaskGroup

log = logging.getLogger(__name__)

ACCEPTED_PER_TURN: Final = 32
_REST_SECONDS: Final = 1.0
_DRAIN_BYTES: Final = 1 << 16

Leave = Callable[[], None]


class Guests:
    """Who is in: connections in total and by address, against their limits. 0 is no limit."""

    def __init__(self, most: int, most_per_address: int, descriptors: Descriptors, spare: int = 0) -> None:
        """``spare``: connections left to other doors."""
        self.most = most
        self.count = 0
        self.refused = 0
        """Since the start."""
        self._most_per_address = most_per_address
        self._descriptors = descriptors
        self._spare = spare
        self._by_address: dict[str, int] = {}

    def enter(self, address: str) -> str | None:
        """Count one more, or say why not."""
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

    def leave(self, address: str) -> None:
        """One of them is gone."""
        self.count -= 1
        self._descriptors.connections -= 1
        left = self._by_address.get(address, 0) - 1
        if left > 0:
            self._by_address[address] = left
        else:
            self._by_address.pop(address, None)


class Door:
    """Owner of a listening socket. ``make`` is given what it has to call when its connection is lost."""

    def __init__(
        self,
        name: str,
        listening: socket.socket,
        guests: Guests,
        make: Callable[[Leave], asyncio.Protocol],
        refusal: Callable[[str], bytes],
    ) -> None:
        self.guests = guests
        self.port: int = listening.getsockname()[1]
        self._name = name
        self._socket = listening
        self._make = make
        self._refusal = refusal
        self._tasks = TaskGroup(name)
        self._limited = Limited(log)
        self._rest: asyncio.TimerHandle | None = None
        self._open = False

    def open(self) -> None:
        """Begin to accept."""
        self._socket.setblocking(False)
        self._open = True
        asyncio.get_running_loop().add_reader(self._socket.fileno(), self._accept)

    def close(self) -> None:
        """Accept nobody any more; those who are in stay."""
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
                continue  # gone before it was its turn
            except OSError as error:
                self._pause(error)
                return
            client.setblocking(False)
            host = str(address[0])
            why = self.guests.enter(host)
            if why is None:
                self._tasks.start(self._admit(client, host), "accept")
            else:
                self._limited.warning(why, "%s: %s is turned away: %s", self._name, host, why)
                self._turn_away(client, why)

    async def _admit(self, client: socket.socket, host: str) -> None:
        counted = True

        def leave() -> None:
            nonlocal counted
            if counted:
                counted = False
                self.guests.leave(host)

        try:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await asyncio.get_running_loop().connect_accepted_socket(lambda: self._make(leave), client)
        except OSError as error:
            log.debug("%s: %s left at once: %s", self._name, host, error)
            client.close()
            leave()
        except BaseException:
            client.close()
            leave()
            raise

    def _turn_away(self, client: socket.socket, why: str) -> None:
        try:
            client.send(self._refusal(why))
            client.shutdown(socket.SHUT_WR)
            # what it has said is taken, or the system would reset the connection and our answer with it
            client.recv(_DRAIN_BYTES)
        except OSError:
            pass
        finally:
            client.close()

    def _pause(self, error: OSError) -> None:
        """The system has no descriptor or no memory for one more: do not ask again and again."""
        loop = asyncio.get_running_loop()
        self._limited.warning("rest", "%s: nobody can be accepted, trying again in a second: %s", self._name, error)
        loop.remove_reader(self._socket.fileno())
        self._rest = loop.call_later(_REST_SECONDS, self._resume)

    def _resume(self) -> None:
        self._rest = None
        if self._open:
            asyncio.get_running_loop().add_reader(self._socket.fileno(), self._accept)


def listen(host: str, port: int, backlog: int) -> socket.socket:
    """Bind and listen; port 0 is any free one. Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=backlog)
