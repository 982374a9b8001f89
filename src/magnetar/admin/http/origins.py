"""Origins: requests that a web page can make a browser send are refused, those of programs pass (decision 021).

:func:`refusal` judges the facts of one request and knows nothing of ASGI; :class:`OriginCheck` collects those facts,
answers refused requests, and adds to every answer the headers that keep browsers from using it in other ways.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable
from ipaddress import ip_address
from typing import Final, Literal, NamedTuple
from urllib.parse import unquote_to_bytes, urlsplit

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from magnetar.admin.http.bodies import answer
from magnetar.config.settings import Settings

OPEN_TO_LINKS: Final = frozenset(("/docs",))
"""The path that other sites may link to: its answer is the same for everyone and changes nothing."""

FORM_REFUSED: Final = 415
_PLAIN_TEXT: Final = "text/plain"
_FORMS: Final = frozenset(("application/x-www-form-urlencoded", "multipart/form-data", _PLAIN_TEXT))
_READING: Final = frozenset(("GET", "HEAD"))
_OWN_SITE: Final = frozenset(("same-origin", "none"))
_PRIVATE: Final = (".local", ".internal", ".svc", ".test", ".home.arpa", ".cluster.local")
_HEADERS: Final = {
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
}
_SHOWN: Final = 100
_DEFAULT_PORTS: Final = {"http": ":80", "https": ":443"}


class RequestOrigin(NamedTuple):
    """What a request reports about where it comes from; an absent header is ``None``."""

    method: str
    path: str
    host: str | None
    origin: str | None
    site: str | None
    content_type: str | None
    scheme: Literal["http", "https"] = "http"


class Refusal(NamedTuple):
    """Status and reason of a refused request."""

    status: int
    reason: str


class HostNames:
    """The host names under which this broker may be asked."""

    def __init__(self, listed: Iterable[str], *, on_loopback: bool) -> None:
        self._listed = frozenset(map(_name, filter(None, listed)))
        self._on_loopback = on_loopback

    @staticmethod
    def of(settings: Settings) -> HostNames:
        """The names that the settings allow and, unless the port is bound to the loopback, those of the machine."""
        on_loopback = is_loopback(settings.bindAddress)
        machine = () if on_loopback else (socket.gethostname(), socket.getfqdn())
        listed = (name.strip() for name in settings.webServiceAllowedHosts.split(","))
        return HostNames((*listed, settings.advertisedAddress, *machine), on_loopback=on_loopback)

    def include(self, host: str) -> bool:
        """Whether a ``Host`` header, with or without a port, names this broker."""
        if "*" in self._listed:
            return True
        name = _name(host)
        if name in self._listed or name == "localhost" or name.endswith(".localhost"):
            return True
        if _is_address(name):
            return True
        private = "." not in name or name.endswith(_PRIVATE)
        return private and bool(name) and not self._on_loopback


def refusal(asked: RequestOrigin, names: HostNames) -> Refusal | None:
    """Return why the request is refused, ``None`` if it is served."""
    if asked.host is not None and not names.include(asked.host):
        return Refusal(
            403,
            f"this broker does not go by the name {asked.host[:_SHOWN]!r} of the Host header; if it should, add the "
            "name to the setting webServiceAllowedHosts (or use its IP address)",
        )
    if _from_elsewhere(asked):
        return Refusal(
            403,
            f"a page of {(asked.origin or 'another site')[:_SHOWN]!r} made a browser send this request; this broker "
            "answers programs and its own pages only",
        )
    kind = (asked.content_type or "").partition(";")[0].strip().lower()
    # a form has no other method than POST: a bare number as plain text, with PUT, comes from a program
    if kind in _FORMS and asked.method not in _READING and (kind != _PLAIN_TEXT or asked.method == "POST"):
        return Refusal(
            FORM_REFUSED, f"content type {kind} is what web forms send and is not accepted; send application/json"
        )
    return None


def is_loopback(address: str) -> bool:
    """Whether only this machine reaches a port that is bound to ``address``."""
    if address == "localhost":
        return True
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False


def _from_elsewhere(asked: RequestOrigin) -> bool:
    if asked.path in OPEN_TO_LINKS and asked.method in _READING:
        return False
    # a page cannot set or remove this one; browsers leave it out where the broker has a name and no TLS
    if asked.site is not None:
        return asked.site not in _OWN_SITE
    return asked.origin is not None and not _same_place(asked.origin, asked)


def _place(origin: str) -> tuple[str, str] | None:
    """Scheme of an Origin, and host and port in the form of a Host header; ``None`` for ``null`` and malformed ones."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return None
    default = _DEFAULT_PORTS.get(parts.scheme)
    return None if default is None else (parts.scheme, parts.netloc.lower().removesuffix(default))


def _same_place(origin: str, asked: RequestOrigin) -> bool:
    """Whether the page is from this address; a proxy may have taken TLS off, but not put it on."""
    found = _place(origin)
    own = (asked.host or "").lower().removesuffix(_DEFAULT_PORTS[asked.scheme])
    return found is not None and found[1] == own and (found[0] == "https" or asked.scheme == "http")


def _name(host: str) -> str:
    """The host name without port and final dot, in small letters."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdecimal() and ":" not in name else host).removesuffix(".")


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


class OriginCheck:
    """ASGI middleware around the whole application."""

    def __init__(self, app: ASGIApp, names: HostNames, does_nothing: Callable[[Scope], bool]) -> None:
        """``does_nothing``: whether a request can only end in a refusal. Forms get that one: `pulsar-admin` sends them
        to functions, connectors and packages, and has to hear why those are not here."""
        self._app = app
        self._names = names
        self._does_nothing = does_nothing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def labelled(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refused = _unreadable(scope) or refusal(_asked(scope), self._names)
        if refused is not None and refused.status == FORM_REFUSED and self._does_nothing(scope):
            refused = None
        if refused is not None:
            await answer({"reason": refused.reason}, refused.status)(scope, receive, labelled)
            return
        await self._app(scope, receive, labelled)


def _asked(scope: Scope) -> RequestOrigin:
    found: dict[bytes, str] = {}
    for name, value in scope["headers"]:
        if name in _OF_INTEREST:
            found[name] = value.decode("latin-1")
    host, origin, site, content_type = map(found.get, _OF_INTEREST)
    return RequestOrigin(
        scope["method"], scope["path"], host, origin, site, content_type,
        "https" if scope["scheme"] == "https" else "http",
    )  # fmt: skip


_OF_INTEREST: Final = (b"host", b"origin", b"sec-fetch-site", b"content-type")


def _unreadable(scope: Scope) -> Refusal | None:
    """Refuse paths and queries that are not UTF-8, percent-encoded or not, and requests with two Host headers."""
    if sum(name == b"host" for name, _ in scope["headers"]) > 1:
        return Refusal(400, "more than one Host header")
    for what, raw in (("path", scope.get("raw_path") or b""), ("query", scope.get("query_string") or b"")):
        if not raw.isascii():
            return Refusal(400, f"the {what} has bytes that must be percent-encoded")
        if b"%" in raw:
            try:
                unquote_to_bytes(raw).decode()
            except UnicodeDecodeError:
                shown = raw.decode("ascii")[:_SHOWN]
                return Refusal(400, f"the {what} {shown!r} is not UTF-8 after percent-decoding")
    return None
