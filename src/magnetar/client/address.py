"""Where brokers are: ``pulsar://host[:port][,host[:port]...]``, with TLS ``pulsar+ssl://``.

The hosts are tried in order. With ``http://`` or ``https://`` the questions (which broker serves a topic, how many
partitions it has) go to REST; producers and consumers connect to the brokers that it names, with TLS for https.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from magnetar.model.errors import InvalidValueError

DEFAULT_PORT: Final = 6650
DEFAULT_TLS_PORT: Final = 6651


class Address(NamedTuple):
    """One host of a service URL."""

    host: str
    port: int
    tls: bool = False
    """Whether the port speaks TLS; then nothing is sent to it without."""

    def __str__(self) -> str:
        return f"{self.host}:{self.port}" if ":" not in self.host else f"[{self.host}]:{self.port}"


class _Scheme(NamedTuple):
    tls: bool
    over_http: bool
    port: int


_SCHEMES: Final = {
    "pulsar": _Scheme(False, False, DEFAULT_PORT),
    "pulsar+ssl": _Scheme(True, False, DEFAULT_TLS_PORT),
    "http": _Scheme(False, True, 8080),
    "https": _Scheme(True, True, 8443),
}


class ServiceUrl(NamedTuple):
    """What a service URL says."""

    addresses: tuple[Address, ...]
    tls: bool
    over_http: bool
    """Whether REST is asked which broker serves a topic."""

    @classmethod
    def parse(cls, url: str) -> ServiceUrl:
        """Return what the URL says. Raises InvalidValueError saying what is wrong with it."""
        name, separator, rest = url.strip().partition("://")
        if not separator:
            raise InvalidValueError(f"service URL {shown_url(url)!r} has no scheme; write pulsar://host:6650")
        scheme = _SCHEMES.get(name)
        if scheme is None:
            raise InvalidValueError(
                f"service URL {shown_url(url)!r}: unknown scheme {name!r}; write pulsar://host:6650, with TLS "
                "pulsar+ssl://host:6651, or http://host:8080 or https://host:8443 for lookups by REST"
            )
        hosts = tuple(_parse_host(part, url, scheme) for part in rest.rstrip("/").split(","))
        return cls(hosts, scheme.tls, scheme.over_http)


def shown_url(url: str) -> str:
    """Return a URL as an error may show it: a name and a password in front of the host are left out."""
    before, at, after = url.rpartition("@")
    if not at:
        return url
    scheme, separator, _ = before.partition("://")
    return f"{scheme}://...@{after}" if separator else f"...@{after}"


def parse_service_url(url: str) -> tuple[Address, ...]:
    """Return all addresses of a service URL of the binary protocol. Raises InvalidValueError, about REST's, too."""
    found = ServiceUrl.parse(url)
    if found.over_http:
        scheme = url.strip().partition("://")[0]
        raise InvalidValueError(
            f"service URL {shown_url(url)!r}: unknown scheme {scheme!r}; write pulsar://host:6650, with TLS pulsar+ssl://host:6651"
        )
    return found.addresses


def _parse_host(text: str, url: str, scheme: _Scheme) -> Address:
    host, _, port = text, "", ""
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        port = rest.removeprefix(":")
    elif ":" in text:
        host, _, port = text.partition(":")
    if not host or (port and not port.isdecimal()) or (port and not 0 < int(port) < 65_536):
        raise InvalidValueError(f"service URL {shown_url(url)!r}: {shown_url(text)!r} is no host:port")
    return Address(host, int(port) if port else scheme.port, scheme.tls)
