"""One broker on a disk in memory and on real sockets: booted, killed, booted again; lives in its loop.

The broker is the product's own, with its own metadata log and journal; disk, clock and chance are the kit's. Killing it
drops every task and callback of it at once (:mod:`magnetar.testing.processes`), and cuts its connections.
"""

from __future__ import annotations

import asyncio
import random
import socket
from typing import TYPE_CHECKING, Final

from magnetar.app.node import Broker
from magnetar.broker.connection.listener import Listener
from magnetar.config.settings import Settings
from magnetar.model.errors import InvalidValueError
from magnetar.runtime.clock import Clock
from magnetar.storage.backends.local_journal import take
from magnetar.storage.metadata_log.metadata_log import MetadataLog
from magnetar.testing.faultfiles import FaultFileSystem
from magnetar.testing.kit.broker_thread import BrokerClosedError
from magnetar.testing.kit.faulty_connection import ActiveFaults, FaultyConnection
from magnetar.testing.kit.virtual_loop import InlineExecutor, VirtualLoop
from magnetar.testing.processes import Process

if TYPE_CHECKING:
    from magnetar.app.rest import RestPort

HOST: Final = "127.0.0.1"
KEEP_ALIVE_SECONDS: Final = 2_000_000_000
"""Clients whose time is real could not answer a PING within a day that is skipped, so no PING is sent."""
_BACKLOG: Final = 1024
_EXECUTORS: Final = ("writer", "reader", "ahead", "keeper", "archive")


class EmbeddedBroker:
    """``running`` from :meth:`boot` to :meth:`stop`, :meth:`kill` or :meth:`power_off`."""

    def __init__(self, loop: VirtualLoop, settings: Settings, clock: Clock, rng: random.Random) -> None:
        self.settings = settings
        self.faults = ActiveFaults()
        self.files = FaultFileSystem(random.Random(rng.getrandbits(64)), new=True)
        self.port = settings.brokerServicePort or 0
        self.web_port = settings.webServicePort or 0
        """0: none is open yet."""
        self._loop = loop
        self._clock = clock
        self._rng = rng
        self._broker: Broker | None = None
        self._process: Process | None = None
        self._server: asyncio.Server | None = None
        self._rest: RestPort | None = None

    @property
    def running(self) -> bool:
        """Whether clients are served."""
        return self._broker is not None

    @property
    def broker(self) -> Broker:
        """The product's. Raises BrokerClosedError while it is dead."""
        if self._broker is None:
            raise BrokerClosedError("the broker is dead: call broker.restart() first")
        return self._broker

    async def boot(self) -> None:
        """Recover and listen. Raises InvalidValueError if it runs, and what a start raises."""
        if self._process is not None:
            raise InvalidValueError("the broker runs: kill() or power_off() comes before restart()")
        process = self._process = Process(self._loop, "broker")
        try:
            await process.start(self._start())
            if self.web_port:
                await self.open_rest()
        except BaseException:
            self.kill()
            raise

    async def _start(self) -> None:
        take(self.files)
        broker = Broker(
            self.files, MetadataLog(self.files), self.settings, self._clock,
            random.Random(self._rng.getrandbits(64)), {name: InlineExecutor() for name in _EXECUTORS},
        )  # fmt: skip
        await broker.start()
        listening = socket.create_server((HOST, self.port), backlog=_BACKLOG)
        self.port = listening.getsockname()[1]
        broker.service.service_url = f"pulsar://{HOST}:{self.port}"
        self._broker = broker

        def make() -> FaultyConnection:
            return FaultyConnection(Listener(broker.service, broker.connections), self.faults)

        self._server = await self._loop.create_server(make, sock=listening)

    async def open_rest(self) -> None:
        """Serve the REST interface, too; repeatable. Raises BrokerClosedError."""
        broker, process = self.broker, self._process
        if self._rest is None:
            assert process is not None
            await process.start(self._serve_rest(broker))
        assert self._rest is not None
        await self._rest.serving()

    async def _serve_rest(self, broker: Broker) -> None:
        from magnetar.app.rest import RestPort
        from magnetar.runtime.connections.acceptor import Entrance
        from magnetar.runtime.connections.descriptors import Descriptors, limit_now

        listening = socket.create_server((HOST, self.web_port), backlog=_BACKLOG)
        self.web_port = listening.getsockname()[1]
        service = broker.service
        service.web_service_url = f"http://{HOST}:{self.web_port}"
        await broker.resources.announce(
            serviceUrl=service.web_service_url, serviceUrlTls="", brokerServiceUrl=service.service_url,
            brokerServiceUrlTls="",
        )  # fmt: skip
        self._rest = RestPort(
            [Entrance("http", listening)], self.settings.maxHttpServerConnections, Descriptors(limit_now())
        )
        self._rest.start(service, broker.rates, broker.connections)

    async def stop(self) -> None:
        """End it as Ctrl-C does: what waits is written. Nothing if it is dead."""
        broker, process = self._broker, self._process
        if broker is None or process is None:
            return
        self._broker = None
        self._close_ports()
        rest, self._rest = self._rest, None
        if rest is not None:
            await rest.close()
        await process.start(broker.stop())
        self._process = None
        await asyncio.sleep(0)  # sockets that were closed write what they have
        self._cut_all()
        await asyncio.sleep(0)
        self.files = self.files.reopened()

    def kill(self) -> None:
        """End it as kill -9 does: what is written is found again, synced or not; what waits is gone."""
        self._drop()
        self.files = self.files.reopened()

    def power_off(self) -> None:
        """End it as a power cut does: what was not synced may be gone, torn or garbage."""
        self._drop()
        self.files = self.files.crash(self._rng)

    def _drop(self) -> None:
        process, self._process = self._process, None
        self._broker = None
        self.files.detach()  # first: a dying broker's `finally` blocks must not reach the disk
        self._cut_all()
        self._close_ports()
        rest, self._rest = self._rest, None
        if rest is not None:
            for entrance in rest.entrances:
                self._loop.remove_reader(entrance.listening.fileno())
                entrance.listening.close()
        if process is not None:
            process.kill()

    def _cut_all(self) -> None:
        for connection in list(self.faults.connections):
            connection.abandon()

    def _close_ports(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.close()
