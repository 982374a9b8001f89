"""Where a broker is: ``pulsar://host[:port][,host[:port]...]``; the hosts are tried in order."""

from __future__ import annotations

from typing import Final, NamedTuple

from magnetar.model.errors import InvalidValueError

DEFAULT_PORT: Final = 6650


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}" if ":" not in self.host else f"[{self.host}]:{self.port}"


def parse_service_url(url: str) -> tuple[Address, ...]:
    """Return all addresses of a service URL; InvalidValueError says what is wrong with it."""
    scheme, separator, rest = url.strip().partition("://")
    if not separator:
        raise InvalidValueError(f"service URL {url!r} has no scheme; write pulsar://host:6650")
    if scheme == "pulsar+ssl":
        raise InvalidValueError(f"service URL {url!r}: TLS is not built into this client yet; use pulsar://")
    if scheme != "pulsar":
        raise InvalidValueError(f"service URL {url!r}: unknown scheme {scheme!r}; write pulsar://host:6650")
    return tuple(_parse_host(part, url) for part in rest.rstrip("/").split(","))


def _parse_host(text: str, url: str) -> Address:
    host, _, port = text, "", ""
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        port = rest.removeprefix(":")
    elif ":" in text:
        host, _, port = text.partition(":")
    if not host or (port and not port.isdecimal()) or (port and not 0 < int(port) < 65_536):
        raise InvalidValueError(f"service URL {url!r}: {text!r} is no host:port")
    return Address(host, int(port) if port else DEFAULT_PORT)
