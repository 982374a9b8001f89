"""Which cluster a client uses now, and who may have it move: an application, its provider, or a failover."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from magnetar.client.aio.authentication import Authentication
from magnetar.client.aio.connections.connection_pool import ConnectionPool
from magnetar.client.aio.connections.service import Service
from magnetar.client.aio.services.auto_cluster_failover import AutoClusterFailover
from magnetar.client.aio.services.cluster_watch import ClusterWatch
from magnetar.client.aio.services.service_info import ServiceInfo, TlsChoices
from magnetar.client.aio.services.service_info_provider import ServiceInfoProvider
from magnetar.client.errors import ArgumentError
from magnetar.client.login import ClientLogin
from magnetar.client.machines.cluster_choice import ClusterChoice
from magnetar.security.credentials.method import ClientCredentials

_LOG: Final = logging.getLogger(__name__)

GivenService: TypeAlias = str | AutoClusterFailover | ServiceInfoProvider
"""What a client is made with."""


class ServiceSwitch:
    """The cluster of one client."""

    def __init__(
        self,
        given: GivenService,
        authentication: ClientLogin | Authentication | ClientCredentials | None,
        trust: str | None,
        tls: TlsChoices,
    ) -> None:
        """Raises ArgumentError, InvalidValueError."""
        if not isinstance(given, GivenService):
            raise ArgumentError(
                f"service_url is a text, an AutoClusterFailover or a ServiceInfoProvider, not {type(given).__name__}"
            )
        if not isinstance(given, str) and (authentication is not None or trust is not None):
            raise ArgumentError(
                f"with {type(given).__name__} authentication and tls_trust_certs_file_path stand in each ServiceInfo"
            )
        self._given = given
        self._tls = tls
        if isinstance(given, str):
            self.info = ServiceInfo(given, authentication, trust)
        elif isinstance(given, AutoClusterFailover):
            self.info = given.primary
        else:
            self.info = _checked(given.initial_service_info())
        self.service = self.info.service(tls)
        self.pool: ConnectionPool | None = None
        """Which moves with it."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._watch: ClusterWatch | None = None
        self._closed = False

    def begin(self) -> None:
        """Let those begin who may have the client move; does nothing the second time. It needs the running loop."""
        if self._loop is not None or self._closed:
            return
        self._loop = asyncio.get_running_loop()
        given = self._given
        if isinstance(given, ServiceInfoProvider):
            given.initialize(self._told)
        elif isinstance(given, AutoClusterFailover):
            assert self.pool is not None, "connections come before the watch"
            self._watch = self._watching(given, self.pool.reaches)

    def _watching(self, given: AutoClusterFailover, reaches: Callable[[Service], Awaitable[bool]]) -> ClusterWatch:
        clusters = [given.primary, *given.secondary]
        choice = ClusterChoice(len(given.secondary), given.failover_threshold, given.switch_back_threshold)
        services = [one.service(self._tls) for one in clusters]
        interval = given.check_interval_ms / 1_000
        return ClusterWatch(choice, services, interval, reaches, lambda number: self._move(clusters[number]))

    def _told(self, info: ServiceInfo) -> None:
        """Move where a provider says, whatever thread calls. Raises ArgumentError."""
        info = _checked(info)
        assert self._loop is not None, "a provider gets its callback after the start"
        try:
            here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            here = False
        if here:
            self._move(info)
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._move, info)

    def update(self, service_url: str) -> None:
        """Move to another URL, with the same credentials and TLS. Raises ArgumentError."""
        if not isinstance(self._given, str):
            raise ArgumentError(f"the {type(self._given).__name__} of this client says which cluster it uses")
        self._move(self.info.moved_to(service_url))

    def _move(self, info: ServiceInfo) -> None:
        if self._closed:
            return
        service = info.service(self._tls)
        _LOG.info("the client moves from %s to %s", self.info.service_url, info.service_url)
        self.info, self.service = info, service
        if self.pool is not None:
            self.pool.move(service)

    def close(self) -> None:
        """Move no more; closing twice is no error."""
        if self._closed:
            return
        self._closed = True
        if self._watch is not None:
            self._watch.end()
        if isinstance(self._given, ServiceInfoProvider):
            self._given.close()


def _checked(given: object) -> ServiceInfo:
    if not isinstance(given, ServiceInfo):
        raise ArgumentError(f"a provider gives a ServiceInfo, and not {type(given).__name__}")
    return given
