"""A broker that follows a script: for each connection one function, which reads commands and answers as it likes."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from magnetar.protocol import commands as c
from magnetar.protocol.codec import encode
from magnetar.protocol.handmade_frames.deliveries import Deliveries
from magnetar.protocol.server import ServerConnection

Wanted = TypeVar("Wanted")

TOPIC = "persistent://public/default/t"


class Link:
    """The broker's end of one connection, greeted."""

    def __init__(self, peer: socket.socket, url: str) -> None:
        self.url = url
        self._peer = peer
        self._state = ServerConnection()
        self._waiting: list[c.Command] = []

    def expect(self, kind: type[Wanted]) -> Wanted:
        """The next command, which must be of that kind."""
        while not self._waiting:
            data = self._peer.recv(1 << 16)
            if not data:
                raise EOFError(f"the client left instead of sending {kind.__name__}")
            for command in self._state.receive(data):
                self._waiting += command.commands() if isinstance(command, c.SendRun | c.AckRun) else [command]
        found = self._waiting.pop(0)
        assert isinstance(found, kind), f"{found} instead of {kind.__name__}"
        return found

    def send(self, *commands: c.Command) -> None:
        self.send_bytes(b"".join(encode(command) for command in commands))

    def send_bytes(self, data: bytes) -> None:
        self._peer.sendall(data)

    def greet(self, max_message_size: int | None = None) -> c.CommandConnect:
        connect = self.expect(c.CommandConnect)
        self.send(c.CommandConnected("scripted", 21, max_message_size))
        return connect

    def look_up(self) -> None:
        """Answer one LOOKUP: it is us."""
        asked = self.expect(c.CommandLookupTopic)
        plain, secured = (None, self.url) if self.url.startswith("pulsar+ssl") else (self.url, None)
        self.send(
            c.CommandLookupTopicResponse(asked.request_id, c.LookupType.Connect, plain, secured, authoritative=True)
        )

    def partitions(self, count: int) -> None:
        """Answer one question for partitions."""
        asked = self.expect(c.CommandPartitionedTopicMetadata)
        answer = c.CommandPartitionedTopicMetadataResponse
        self.send(answer(asked.request_id, partitions=count, response=c.MetadataType.Success))

    def until_closed(self) -> None:
        """The client closes the connection at last, whatever it says before."""
        with suppress(OSError):
            while self._peer.recv(1 << 16):
                pass

    def until_gone(self) -> None:
        """The client ends the connection, politely or not, without another word."""
        with suppress(OSError):
            self.until_left()

    def until_left(self) -> None:
        """The client closes without another word."""
        assert not self._waiting
        assert self._peer.recv(1) == b""

    def deliver(self, consumer_id: int, *entries: tuple[int, int, bytes]) -> None:
        deliveries = Deliveries(consumer_id)
        parts: list[bytes] = []
        for ledger, entry, data in entries:
            parts += deliveries.header(ledger, entry, len(data)), data
        self.send_bytes(b"".join(parts))


Script = Callable[[Link], None]


@contextmanager
def scripted_broker(*scripts: Script | None, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Gives the service URL; at the end every script must have run to its end without an error.

    With ``tls``, ``None`` instead of a script is a client that leaves during the handshake.
    """
    failures: list[BaseException] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(10)
        scheme = "pulsar" if tls is None else "pulsar+ssl"
        url = f"{scheme}://127.0.0.1:{listener.getsockname()[1]}"

        def run(script: Script | None, peer: socket.socket) -> None:
            try:
                with peer:
                    peer.settimeout(10)
                    if script is None:
                        assert tls
                        with suppress(OSError):
                            tls.wrap_socket(peer, server_side=True).recv(1)
                    elif tls is not None:
                        with tls.wrap_socket(peer, server_side=True) as secured:
                            script(Link(secured, url))
                    else:
                        script(Link(peer, url))
            except BaseException as error:
                failures.append(error)

        def serve() -> None:
            try:
                for script in scripts:
                    peer, _ = listener.accept()
                    threads.append(threading.Thread(target=run, args=(script, peer)))
                    threads[-1].start()
            except OSError as error:
                failures.append(error)

        threads = [threading.Thread(target=serve)]
        threads[0].start()
        yield url
        for thread in threads:
            thread.join(15)
            assert not thread.is_alive(), "a script has not come to its end"
    if failures:
        raise failures[0]


def lookups(count: int = 1) -> Script:
    """The connection for questions: so many LOOKUPs, then the client leaves."""

    def script(link: Link) -> None:
        link.greet()
        for _ in range(count):
            link.look_up()
        link.until_left()

    return script
