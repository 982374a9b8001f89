"""A whole broker in memory: the product's own :class:`magnetar.app.node.Broker` on a simulated :class:`Machine`.

Disk, clock, network and threads are the simulator's; everything else, the metadata log too, is what ``magnetar
standalone`` runs. Faults come from outside:
``kill``, ``power_off`` and their ``…_during`` forms, ``files.faults`` and ``files.fail``, ``clock.jump``.

A wrong build, to prove that a simulation notices a broken promise, is a ``tamper`` function: it gets the broker of each
boot before it starts and may replace whatever it likes. The product knows nothing of it.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Final

from magnetar.app.node import Broker
from magnetar.broker.connection.listener import factory
from magnetar.config.settings import Settings
from magnetar.offload.parquet_archive import ParquetArchive
from magnetar.storage.backends.local_journal import take
from magnetar.storage.metadata_log.metadata_log import MetadataLog
from magnetar.storage.store_settings import StoreSettings
from magnetar.testing.faultfiles import Faults
from magnetar.testing.kit.virtual_loop import InlineExecutor
from magnetar.testing.machine import Machine
from magnetar.testing.network import Network
from magnetar.testing.simloop import SimLoop

HOST: Final = "broker"
PORT: Final = 6650
_WRITING: Final = ("writer", "keeper")

Tamper = Callable[[Broker], None]


class BrokerMachine(Machine):
    """A computer whose program is the broker, listening at ``host:PORT``."""

    def __init__(
        self,
        loop: SimLoop,
        network: Network,
        *,
        settings: Settings | None = None,
        storage: StoreSettings | None = None,
        faults: Faults | None = None,
        tamper: Tamper | None = None,
        host: str = HOST,
    ) -> None:
        """``host``: its name in the network, where there are several."""
        super().__init__(loop, network, lambda _: self._serve(), name=host, faults=faults)
        self.host = host
        self.settings = settings or Settings()
        self.storage = storage
        self.tamper = tamper
        self.archive: ParquetArchive | None = None
        """What offloads go through; set before the start. Nothing may outlive a power-off that its place did not."""
        self.broker: Broker
        """The one of the last boot, dead or alive."""
        self._threads: dict[str, Executor] = {}
        self._ready: asyncio.Future[None] = loop.create_future()
        self._stopping = asyncio.Event()

    async def start(self) -> None:
        """Boot and return when clients can connect. Raises what start-up raises."""
        self._ready = self.loop.create_future()
        self._stopping = asyncio.Event()
        main = self.boot()
        await asyncio.wait((main, self._ready), return_when=asyncio.FIRST_COMPLETED)
        if main.done():
            main.result()

    async def stop(self) -> None:
        """Ctrl-C: the broker lets its clients go, writes what waits and ends."""
        assert self._main is not None
        self._stopping.set()
        await self._main
        self._process = None
        self.files = self.files.reopened()

    def hold_writes(self) -> None:
        """The disk hangs: no write, sync, checkpoint or removal completes until :meth:`release_writes`."""
        for name in _WRITING:
            self.loop.hold(self._threads[name])

    def release_writes(self) -> None:
        """The disk goes on, also for a broker that is dead by now."""
        for name in _WRITING:
            self.loop.release(self._threads[name])

    async def _serve(self) -> None:
        threads = self._threads = {name: ThreadPoolExecutor(1) for name in ("writer", "reader", "keeper", "archive")}
        threads["ahead"] = InlineExecutor()
        take(self.files)
        metadata = MetadataLog(self.files)
        broker = self.broker = Broker(
            self.files, metadata, self.settings, self.clock, random.Random(self.loop.rng.getrandbits(64)), threads,
            storage=self.storage, archive=self.archive,
        )  # fmt: skip
        if self.tamper is not None:
            self.tamper(broker)
        await broker.start()
        server = await self.loop.create_server(factory(broker.service, broker.connections), self.host, PORT)
        broker.service.service_url = f"pulsar://{self.host}:{PORT}"
        if not self._ready.done():
            self._ready.set_result(None)
        await self._stopping.wait()
        server.close()
        await broker.stop()
