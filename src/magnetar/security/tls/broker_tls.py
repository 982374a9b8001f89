"""TLS of one broker: the contexts of its ports, their handshakes, and the check for changed files."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

from magnetar.config.settings import Settings
from magnetar.runtime.connections.acceptor import Make
from magnetar.security.tls.connection import secured
from magnetar.security.tls.handshakes import Handshakes
from magnetar.security.tls.server_tls import ServerTls

log = logging.getLogger(__name__)


class BrokerTls:
    """What the two ports with TLS share."""

    def __init__(self, settings: Settings) -> None:
        """Load certificates for the ports that are open. Raises InvalidValueError."""
        self.handshakes = Handshakes()
        self.refresh_seconds = settings.tlsCertRefreshCheckDurationSec
        self._binary = self._http = None
        if settings.brokerServicePortTls is not None:
            self._binary = ServerTls.of(settings, settings.tlsProtocols, settings.tlsCiphers)
        if settings.webServicePortTls is not None:
            self._http = ServerTls.of(settings, settings.webServiceTlsProtocols, settings.webServiceTlsCiphers)
        for what, names in _ignored(self):
            log.warning("%s: never offered, because it protects nothing any more: %s", what, ", ".join(names))

    def binary(self, make: Make) -> Make:
        """Put TLS around the connections of the binary port."""
        assert self._binary is not None
        return secured("broker (TLS)", self._binary, self.handshakes, make)

    def http(self, make: Make) -> Make:
        """Put TLS around the connections of the HTTP port."""
        assert self._http is not None
        return secured("http (TLS)", self._http, self.handshakes, make)

    @property
    def contexts(self) -> tuple[ServerTls, ...]:
        """Those of the open ports."""
        return tuple(found for found in (self._binary, self._http) if found is not None)

    def counters(self) -> dict[str, int]:
        """What /metrics shows: all since the start, but for the handshakes in progress."""
        return {
            "handshakes": self.handshakes.finished,
            "handshake_failures": self.handshakes.failed,
            "handshakes_in_progress": len(self.handshakes),
            "reload_failures": sum(context.failures for context in self.contexts),
        }

    async def refresh(self) -> None:
        """Load what has changed; files are read beside the event loop."""
        for context in self.contexts:
            await asyncio.to_thread(context.refresh)


def _ignored(tls: BrokerTls) -> Iterator[tuple[str, tuple[str, ...]]]:
    for context in tls.contexts:
        offer = context.offer
        if offer.versions.ignored:
            yield "protocols", offer.versions.ignored
        if offer.suites is not None and offer.suites.ignored:
            yield "ciphers", offer.suites.ignored
