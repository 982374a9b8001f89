"""The listening sockets of a node: each of its two protocols without TLS, with TLS, or both."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from magnetar.config.settings import Settings
from magnetar.model.errors import InvalidValueError
from magnetar.runtime.connections.acceptor import Entrance, listen

if TYPE_CHECKING:
    from magnetar.security.tls.broker_tls import BrokerTls

_BACKLOG: Final = 1024


def broker_tls(settings: Settings) -> BrokerTls | None:
    """Load what the ports with TLS need; ``None`` if there are none. Raises InvalidValueError."""
    if settings.brokerServicePortTls is None and settings.webServicePortTls is None:
        return None
    # a broker without TLS loads none of it
    from magnetar.security.tls.broker_tls import BrokerTls

    return BrokerTls(settings)


def binary_entrances(settings: Settings, tls: BrokerTls | None) -> list[Entrance]:
    """Bind the ports of the binary protocol. Raises OSError."""
    with ExitStack() as bound:
        found = []
        if settings.brokerServicePort is not None:
            found.append(_bind(bound, "broker", settings, settings.brokerServicePort))
        if settings.brokerServicePortTls is not None and tls is not None:
            plain = _bind(bound, "broker (TLS)", settings, settings.brokerServicePortTls)
            found.append(plain._replace(around=tls.binary, watch=tls.handshakes.watch))
        bound.pop_all()
    return found


def http_entrances(settings: Settings, tls: BrokerTls | None) -> list[Entrance]:
    """Bind the ports of the REST interface. Raises OSError."""
    with ExitStack() as bound:
        found = []
        if settings.webServicePort is not None:
            found.append(_bind(bound, "http", settings, settings.webServicePort))
        if settings.webServicePortTls is not None and tls is not None:
            plain = _bind(bound, "http (TLS)", settings, settings.webServicePortTls)
            found.append(plain._replace(around=tls.http, watch=tls.handshakes.watch))
        bound.pop_all()
    return found


def require_free_ports(settings: Settings, tls: BrokerTls | None) -> None:
    """Bind all ports for a moment. Raises OSError, as binding them later would."""
    with ExitStack() as bound:
        for entrances in (binary_entrances, http_entrances):
            for found in entrances(settings, tls):
                bound.enter_context(found.listening)


def _bind(bound: ExitStack, name: str, settings: Settings, port: int) -> Entrance:
    host = settings.bindAddress
    try:
        return Entrance(name, bound.enter_context(listen(host, port, _BACKLOG)))
    except OSError as error:
        if (error.errno or 0) < 0:  # of the resolver, whose own class is lost on the way
            why = str(error.strerror).partition(" (")[0]
            raise InvalidValueError(
                f"bindAddress: {host!r} cannot be resolved: {why}; name an address of this machine, or 0.0.0.0 for all"
            ) from error
        if error.errno == errno.EADDRNOTAVAIL:
            raise InvalidValueError(
                f"bindAddress: {host} is no address of this machine; name one of its own, 127.0.0.1, or 0.0.0.0 for all"
            ) from error
        if error.errno == errno.EACCES:
            raise InvalidValueError(
                f"{name}: this user may not listen at port {port}; choose one from 1024 on"
            ) from error
        if error.errno == errno.EADDRINUSE:
            raise OSError(error.errno, f"{name}: port {port} of {host} is in use") from error
        raise


def port_of(entrances: Sequence[Entrance], *, tls: bool) -> int:
    """The port of the entrance with or without TLS; 0 if there is none."""
    return next((found.port for found in entrances if (found.around is not None) == tls), 0)


def url_of(scheme: str, host: str, port: int) -> str:
    """The address of a port; empty if it is not open."""
    return f"{scheme}://{host}:{port}" if port else ""
