"""One broker process: everything wired together, started in order, stopped in reverse."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import os
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import AsyncExitStack, ExitStack, suppress
from pathlib import Path
from random import Random
from typing import Final

from magnetar.app.data_directory import DataDirectory
from magnetar.app.listening_sockets import (
    binary_entrances,
    broker_tls,
    http_entrances,
    port_of,
    require_free_ports,
    url_of,
)
from magnetar.app.memory import Memory
from magnetar.app.rest import RestPort
from magnetar.authorization.audit import AuditRecords
from magnetar.broker.connection.credential_checks import CredentialChecks
from magnetar.broker.connection.grant_changes import GrantChanges
from magnetar.broker.connection.listener import Connections, Listener, factory
from magnetar.broker.service import BrokerService
from magnetar.broker.setting_changes import SettingChanges
from magnetar.broker.upkeep.compaction_monitor import CompactionMonitor
from magnetar.broker.upkeep.liveness import Liveness
from magnetar.broker.upkeep.periodic_passes import Upkeep
from magnetar.broker.upkeep.rates import Rates
from magnetar.broker.upkeep.unacked_limit import UnackedLimit
from magnetar.config.settings import Settings
from magnetar.metadata.measured_store import MeasuredStore
from magnetar.metadata.resources import Resources
from magnetar.metadata.store import ABSENT, MetadataStore
from magnetar.model.errors import BadVersionError, InvalidValueError, MetadataError, ServerError
from magnetar.offload.parquet_archive import ParquetArchive
from magnetar.protocol.codec import encode
from magnetar.protocol.commands import CommandError
from magnetar.runtime.clock import Clock, SystemClock
from magnetar.runtime.connections.acceptor import Acceptor, ConnectionLimit
from magnetar.runtime.connections.descriptors import Descriptors, limit_now
from magnetar.runtime.memory.trim import SECONDS as MEMORY_SECONDS
from magnetar.runtime.rotated_lines import RotatedLines
from magnetar.runtime.tasks import TaskGroup
from magnetar.security.authentication.service import AuthenticationService
from magnetar.storage.backends.committer import Committer
from magnetar.storage.backends.files import FileSystem, OsFileSystem
from magnetar.storage.backends.local_journal import take
from magnetar.storage.backends.sync_process import SyncProcess
from magnetar.storage.backup.backup_directory import BackupDirectory
from magnetar.storage.backup.running_backup import RunningBackups
from magnetar.storage.local_store import LocalLedgerStore
from magnetar.storage.metadata_log.metadata_log import MetadataLog
from magnetar.storage.store_settings import StoreSettings

log = logging.getLogger(__name__)

_HTTP_SPARE: Final = 16

_INSTANCE_PATH = "/counters/broker-instance"


def store_settings(settings: Settings) -> StoreSettings:
    """The part of the settings that storage obeys."""
    return StoreSettings(
        sync_data=settings.journalSyncData,
        cache_bytes=settings.managedLedgerCacheSizeMB << 20,
        reclaim_bytes_per_second=settings.spaceReclaimBytesPerSecond,
        ledger_entries_max=settings.managedLedgerMaxEntriesPerLedger,
        ledger_bytes_max=settings.managedLedgerMaxSizePerLedgerMbytes << 20,
        ledger_min_rollover_ms=settings.managedLedgerMinLedgerRolloverTimeMinutes * 60_000,
        ledger_max_rollover_ms=settings.managedLedgerMaxLedgerRolloverTimeMinutes * 60_000,
    )


def _authentication(settings: Settings, clock: Clock) -> AuthenticationService | None:
    """Who judges credentials; its libraries are imported only with authentication on. Raises InvalidValueError."""
    if not settings.authenticationEnabled:
        return None
    from magnetar.security.authentication.configured_providers import authentication_service

    return authentication_service(settings, clock)


def _refusal(why: str) -> bytes:
    return encode(CommandError(-1, ServerError.NotAllowedError, why))


def _audit(service: BrokerService) -> RotatedLines | None:
    """The file of the audit log, to which the authorizer's decisions go from now on."""
    authorizer, settings = service.authorizer, service.settings
    if authorizer is None or not settings.auditLogFile:
        return None
    records = AuditRecords(
        service.clock,
        lambda line: lines.put(line),
        lambda seconds, end: asyncio.get_running_loop().call_later(seconds, end),
        authorizer.superuser,
    )
    lines = RotatedLines(
        Path(settings.auditLogFile), settings.auditLogMaxSizeMB << 20, settings.auditLogFiles, records.lost
    )
    authorizer.audit = records
    lines.before_end = records.end_window
    return lines


class Broker:
    """The broker without its sockets: what the simulator runs, and what :class:`Node` puts on the network."""

    def __init__(
        self,
        files: FileSystem,
        metadata: MetadataStore,
        settings: Settings,
        clock: Clock,
        rng: Random,
        executors: dict[str, Executor] | None = None,
        committer: Callable[[Committer], Committer] | None = None,
        storage: StoreSettings | None = None,
        archive: ParquetArchive | None = None,
        home: Path | None = None,
    ) -> None:
        """``home``: the data directory, if there is one."""
        archive = archive or ParquetArchive()
        # a copy: this broker's may change while it runs
        self.settings = settings = dataclasses.replace(settings)
        self.store = LocalLedgerStore(
            files,
            clock,
            storage or store_settings(settings),
            None if executors is None else executors.__getitem__,
            committer,
            archive,
        )
        if isinstance(metadata, MetadataLog):
            self.store.belong_to(metadata.instance)
            self.store.keep_all = metadata.doubt
            metadata.make_room = self.store.full_disk.run_out
        self.backups: RunningBackups | None = None
        if isinstance(metadata, MetadataLog):
            place = BackupDirectory(settings.backupDirectory, None if home is None else str(home))
            trouble = place.trouble()
            if trouble is not None:
                log.warning("%s; until then backups are refused", trouble)
            self.backups = RunningBackups(self.store, files, metadata, place, clock.now_ms)
        self._metadata = metadata
        measured = MeasuredStore(metadata)
        self.resources = Resources(measured, settings)
        self._rng = rng
        self.service = BrokerService(self.store, self.resources, settings, clock, rng, archive)
        self.service.metadata = measured
        self.service.authentication = _authentication(settings, clock)
        self.upkeep = Upkeep(self.service)
        self.service.surroundings.backups = self.backups
        self.service.surroundings.check_quotas = self.upkeep.check_quotas_now
        self.compaction_monitor = CompactionMonitor(self.service)
        self.liveness = Liveness(self.service, settings.livenessCheckSeconds)
        self.unacked_limit = UnackedLimit(self.service)
        self.rates = Rates(self.service, settings.statsUpdateFrequencyInSecs)
        self.connections = Connections()
        self.service.audit = _audit(self.service)
        self.credential_checks = CredentialChecks(self.service, self.connections)
        self.grant_changes = GrantChanges(self.service, self.connections)
        self.setting_changes = SettingChanges(self.service, self.grant_changes)

    async def _instance(self) -> int:
        """A number that no earlier life of this broker had: part of generated producer names (rule 3.1.1)."""
        number: int | None = None
        try:
            while number is None:
                record = self._metadata.get(_INSTANCE_PATH)
                wanted = 0 if record is None else int(record.data) + 1
                with suppress(BadVersionError):  # another broker took that number
                    expected = ABSENT if record is None else record.version
                    await self._metadata.put(_INSTANCE_PATH, str(wanted).encode(), expected)
                    number = wanted
        except MetadataError as error:
            # a full disk must not keep the broker from starting; no counter reaches these numbers
            log.warning("%s; this life of the broker gets a number by chance", error)
            return (1 << 40) + self._rng.getrandbits(40)
        return number

    async def start(self) -> None:
        """Recover. Raises PersistenceError; a broker that could not start has given everything back, as :meth:`stop`
        does."""
        try:
            await self._start()
        except BaseException:
            await self.stop()
            raise

    async def _start(self) -> None:
        self._start_audit()
        self.store.open()  # before anything is written: the start may be refused
        await self.resources.ensure_defaults()
        instance = await self._instance()
        await self.service.start(instance)
        self.service.partitions.start()
        self.upkeep.start()
        self.compaction_monitor.start()
        self.rates.start()
        self.liveness.start()
        self.unacked_limit.start()
        self.credential_checks.start()

    def _start_audit(self) -> None:
        """Raises InvalidValueError if there is to be an audit log and its file cannot be written."""
        if self.service.audit is None:
            return
        try:
            self.service.audit.start()
        except OSError as error:
            raise InvalidValueError(
                f"auditLogFile: {self.settings.auditLogFile!r} cannot be written: {error.strerror}; name a file in a "
                "directory that exists and that the broker may write to"
            ) from None

    def accept(self) -> Listener:
        """The protocol for one new connection."""
        return Listener(self.service, self.connections)

    async def stop(self) -> None:
        """Let every client go, write what waits, release the directory; each step is done whatever another raises."""
        async with AsyncExitStack() as last:  # what is pushed first is done last
            last.push_async_callback(self.resources.close)
            if self.service.authentication is not None:
                last.push_async_callback(self.service.authentication.close)
            last.push_async_callback(self.service.tasks.close)
            if self.service.audit is not None:
                last.callback(self.service.audit.close)
            last.push_async_callback(self.store.close)
            last.callback(self._let_clients_go)
            last.push_async_callback(self.compaction_monitor.close)
            last.push_async_callback(self.service.offloader.close)
            last.push_async_callback(self.service.partitions.close)
            last.push_async_callback(self.upkeep.close)
            last.push_async_callback(self.rates.close)
            last.push_async_callback(self.liveness.close)
            last.push_async_callback(self.unacked_limit.close)
            last.push_async_callback(self.credential_checks.close)
            if self.backups is not None:
                await self.backups.close()

    def _let_clients_go(self) -> None:
        self.service.close()
        for connection in list(self.connections):
            connection.close("the broker stops")


class Node:
    """A broker on real sockets and real files."""

    def __init__(self, data: Path, settings: Settings) -> None:
        self.settings = settings
        self._tls = broker_tls(settings)
        if not os.path.lexists(data):
            require_free_ports(settings, self._tls)  # a start that is refused for them leaves no new directory
        self._home = DataDirectory(data)
        try:
            self.broker = self._make(data)
        except BaseException:
            self._home.forsake()
            self._home.close()
            raise
        self._acceptors: list[Acceptor] = []
        self._serves = False
        """Whether a client may have been served."""
        self._tasks = TaskGroup("node")
        self.port = 0
        self.tls_port = 0
        """Ports of the binary protocol; 0: not open."""
        self.rest: RestPort | None = None

    def _make(self, data: Path) -> Broker:
        files = OsFileSystem(str(data / "ledgers"))
        with ExitStack() as taken:
            take(files)
            taken.callback(files.unlock)
            metadata = self._home.metadata(files)
            taken.callback(metadata.let_go)

            def committer(spare: Committer) -> Committer:
                process = SyncProcess(spare)
                taken.callback(process.close)
                return process

            made = Broker(files, metadata, self.settings, SystemClock(), Random(), committer=committer, home=data)
            taken.pop_all()  # all of it is the broker's now
        return made

    async def start(self) -> None:
        """Recover and listen; REST answers a little later, see :meth:`complete`.

        Raises PersistenceError, OSError, NotAllowedError when there are too few file descriptors.
        """
        try:
            await self.broker.start()
        except BaseException:
            self._home.forsake()
            self._home.close()
            raise
        try:
            await self._listen()
        except BaseException:
            if not self._serves:
                self._home.forsake()
            await self.stop()
            raise

    async def _listen(self) -> None:
        broker, settings = self.broker, self.settings
        service, host = broker.service, settings.advertised_host
        descriptors = Descriptors(limit_now())
        descriptors.require_room()
        http = http_entrances(settings, self._tls)
        self.rest = rest = RestPort(http, settings.maxHttpServerConnections, descriptors)
        advertised = service.listeners.default
        service.web_service_url = advertised("http") or url_of("http", host, port_of(http, tls=False))
        service.web_service_url_tls = advertised("https") or url_of("https", host, port_of(http, tls=True))
        # a few are left to HTTP, so that an operator who looks after a full broker gets in
        spare = min(_HTTP_SPARE, descriptors.room // 4)
        connection_limit = ConnectionLimit(
            settings.brokerMaxConnections, settings.brokerMaxConnectionsPerIp, descriptors, spare
        )
        binary = binary_entrances(settings, self._tls)
        make = factory(service, broker.connections)
        self._acceptors = [Acceptor.at(entrance, connection_limit, make, _refusal) for entrance in binary]
        if self._tls is not None:
            service.surroundings.tls_counters = self._tls.counters
        self.port, self.tls_port = port_of(binary, tls=False), port_of(binary, tls=True)
        self._serves = True
        for acceptor in self._acceptors:
            acceptor.open()
        log.info(
            "up to %d connections: %d file descriptors, %d of them are kept for the disk",
            descriptors.room, descriptors.limit, descriptors.reserve,
        )  # fmt: skip
        service.service_url = advertised("pulsar") or url_of("pulsar", host, self.port)
        service.service_url_tls = advertised("pulsar+ssl") or url_of("pulsar+ssl", host, self.tls_port)
        try:
            await broker.resources.announce(
                serviceUrl=service.web_service_url,
                serviceUrlTls=service.web_service_url_tls,
                brokerServiceUrl=service.service_url,
                brokerServiceUrlTls=service.service_url_tls,
            )
        except MetadataError as error:
            log.warning("%s; the cluster's record names the addresses of an earlier start", error)
        rest.start(service, broker.rates, broker.connections)
        if self._tls is not None and self._tls.refresh_seconds:
            self._tasks.repeat(self._tls.refresh_seconds, self._tls.refresh, "certificates")
        self.memory = Memory(broker.store)
        self._tasks.repeat(MEMORY_SECONDS, self.memory.look, "memory")

    async def complete(self) -> None:
        """Return when REST answers too."""
        if self.rest is not None:
            await self.rest.serving()

    async def stop(self) -> None:
        """Stop listening, then the broker; each step is done whatever another raises."""
        async with AsyncExitStack() as last:  # what is pushed first is done last
            last.callback(self._home.close)
            last.push_async_callback(self.broker.stop)
            if self._tls is not None:
                last.callback(self._tls.handshakes.close)
            for acceptor in self._acceptors:
                last.callback(acceptor.close)
            if self.rest is not None:
                last.push_async_callback(self.rest.close)
            # REST finishes what it has begun, and this could take long
            last.callback(self.broker.service.partitions.end)
            await self._tasks.close()
