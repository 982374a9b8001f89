"""Where a broker is: ``pulsar://host[:port][,host[:port]...]``, with TLS ``pulsar+ssl://``.

The hosts are tried in order.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from magnetar.model.errors import InvalidValueError

DEFAULT_PORT: Final = 6650
DEFAULT_TLS_PORT: Final = 6651
_SCHEMES: Final = {"pulsar": False, "pulsar+ssl": True}


class Address(NamedTuple):
    """One host of a service URL."""

    host: str
    port: int
    tls: bool = False
    """Whether the port speaks TLS; then nothing is sent to it without."""

    def __str__(self) -> str:
        return f"{self.host}:{self.port}" if ":" not in self.host else f"[{self.host}]:{self.port}"


def parse_service_url(url: str) -> tuple[Address, ...]:
    """Return all addresses of a service URL; InvalidValueError says what is wrong with it."""
    scheme, separator, rest = url.strip().partition("://")
    if not separator:
        raise InvalidValueError(f"service URL {url!r} has no scheme; write pulsar://host:6650")
    tls = _SCHEMES.get(scheme)
    if tls is None:
        raise InvalidValueError(
            f"service URL {url!r}: unknown scheme {scheme!r}; write pulsar://host:6650, with TLS pulsar+ssl://host:6651"
        )
    return tuple(_parse_host(part, url, tls) for part in rest.rstrip("/").split(","))


def _parse_host(text: str, url: str, tls: bool) -> Address:
    host, _, port = text, "", ""
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        port = rest.removeprefix(":")
    elif ":" in text:
        host, _, port = text.partition(":")
    if not host or (port and not port.isdecimal()) or (port and not 0 < int(port) < 65_536):
        raise InvalidValueError(f"service URL {url!r}: {text!r} is no host:port")
    default = DEFAULT_TLS_PORT if tls else DEFAULT_PORT
    return Address(host, int(port) if port else default, tls)
