"""One client's session: what it has opened, who answers its commands, and whether it is still alive.

Commands are handled in the order they came (SEMANTICS 1.1.12); a handler that has to wait (for the disk, for another
connection's sign of life) remembers what it needs in a callback and answers later. A handler's MagnetarError becomes
the ERROR of that request; a ProtocolError closes this connection and nobody else notices.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from magnetar.broker.connection.outbox import Outbox
from magnetar.broker.service import BrokerService
from magnetar.broker.topic.consumer import Consumer
from magnetar.broker.topic.producers import Producer
from magnetar.model.errors import MagnetarError, ServerError
from magnetar.protocol import commands as c
from magnetar.protocol.codec import encode

log = logging.getLogger(__name__)

PROBE_SECONDS: Final = 5.0
"""How long a silent connection gets to prove that it is alive (SEMANTICS 5.3.1, 3.1.2)."""

Handler = Callable[["Session", Any], None]


class Pending:
    """A producer or consumer id whose opening is under way; ``cancelled`` when the client closed it meanwhile."""

    __slots__ = ("cancelled",)

    def __init__(self) -> None:
        self.cancelled = False


class Session:
    """Owned by its listener; lives on the event loop."""

    def __init__(
        self,
        service: BrokerService,
        out: Outbox,
        transport: asyncio.Transport,
        handlers: Mapping[type, Handler],
    ) -> None:
        self.service = service
        self.out = out
        self.transport = transport
        self.loop = asyncio.get_running_loop()
        self._handlers = handlers
        peer = transport.get_extra_info("peername") or ("?", 0)
        self.address = f"/{peer[0]}:{peer[1]}"
        self.client_version = ""
        self.protocol_version = 0
        self.features = c.FeatureFlags()
        self.producers: dict[int, Producer | Pending] = {}
        self.consumers: dict[int, Consumer | Pending] = {}
        self.recently_closed: dict[int, float] = {}
        """Producers that we closed, and when (loop time): their sends in flight are ignored (SEMANTICS 3.3.1)."""
        self.pending_publishes = 0
        self.reading_paused = False
        self.closed = False
        self._probes: list[Callable[[bool], None]] = []
        self._probe_timer: asyncio.TimerHandle | None = None

    # commands ----------------------------------------------------------------------------------------------------

    def handle(self, commands: list[c.Command]) -> None:
        """Handle decoded commands in order. Raises ProtocolError if the connection is to be closed."""
        handlers = self._handlers
        for command in commands:
            handler = handlers.get(type(command))
            if handler is None:
                self.not_supported(command)
                continue
            handler(self, command)
            if self.closed:
                return

    def not_supported(self, command: c.Command) -> None:
        """A command of a feature that is not there yet: a clear answer if the client waits for one."""
        request_id = getattr(command, "request_id", None)
        name = type(command).__name__
        log.warning("%s: %s is not available in this version of magnetar", self.address, name)
        if request_id is not None:
            self.error(request_id, ServerError.NotAllowedError, f"{name} is not available in this version of magnetar")

    def send(self, command: c.Command) -> None:
        """Put one command into the outbox."""
        self.out.put(encode(command))

    def error(self, request_id: int, code: ServerError, message: str) -> None:
        """ERROR for a request."""
        self.send(c.Error(request_id, code, message))

    def fail(self, request_id: int, error: MagnetarError) -> None:
        """ERROR for a request, from the error that a handler met."""
        self.error(request_id, error.code, str(error))

    # life --------------------------------------------------------------------------------------------------------

    def close(self, reason: str) -> None:
        """Close the connection from our side; what is in the outbox is still sent."""
        if self.closed:
            return
        log.info("%s: closing the connection: %s", self.address, reason)
        self.closed = True
        self.out.flush()
        self.transport.close()

    def alive(self) -> None:
        """Something was received while a probe was under way."""
        probes, self._probes = self._probes, []
        if self._probe_timer is not None:
            self._probe_timer.cancel()
            self._probe_timer = None
        for answer in probes:
            answer(True)

    @property
    def probing(self) -> bool:
        """Whether somebody waits for a sign of life."""
        return bool(self._probes)

    def probe(self, answer: Callable[[bool], None]) -> None:
        """Ask the client for a sign of life; ``answer(False)`` and eviction after PROBE_SECONDS of silence."""
        if self.closed:
            self.loop.call_soon(answer, False)
            return
        self._probes.append(answer)
        if self._probe_timer is None:
            self.send(c.Ping())
            self._probe_timer = self.loop.call_later(PROBE_SECONDS, self._dead)

    def _dead(self) -> None:
        self._probe_timer = None
        probes, self._probes = self._probes, []
        self.close(f"no sign of life for {PROBE_SECONDS:g} s while another client wants its place")
        self.lost()
        for answer in probes:
            answer(False)

    def lost(self) -> None:
        """The connection is gone: everything it had opened leaves its topic, in the order it was opened."""
        self.closed = True
        self.out.closed = True
        producers, self.producers = self.producers, {}
        consumers, self.consumers = self.consumers, {}
        for producer in producers.values():
            if isinstance(producer, Pending):
                producer.cancelled = True
            else:
                self.service.producer_left(producer)
        for consumer in consumers.values():
            if isinstance(consumer, Pending):
                consumer.cancelled = True
            else:
                consumer.leave()
        probes, self._probes = self._probes, []
        if self._probe_timer is not None:
            self._probe_timer.cancel()
        for answer in probes:
            answer(False)

    # reading from the socket -------------------------------------------------------------------------------------

    def pause_reading(self) -> None:
        """Take no more from this client for now: its messages wait for the disk (SEMANTICS 3.3.10)."""
        if not self.reading_paused and not self.closed:
            self.reading_paused = True
            self.transport.pause_reading()

    def resume_reading(self) -> None:
        """Go on."""
        if self.reading_paused and not self.closed:
            self.reading_paused = False
            self.transport.resume_reading()

    def writable_again(self) -> None:
        """The socket takes more: its consumers may be served."""
        for consumer in list(self.consumers.values()):
            if isinstance(consumer, Consumer):
                consumer.resume()
