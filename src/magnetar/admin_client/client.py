"""The two clients: one that blocks, one for asyncio; both have the same groups of operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from magnetar.admin_client.asyncio_transport import AsyncioTransport
from magnetar.admin_client.blocking_transport import BlockingTransport
from magnetar.admin_client.generated.asyncio_groups import AsyncGroups
from magnetar.admin_client.generated.blocking_groups import Groups
from magnetar.client.arguments import kinds
from magnetar.client.arguments.expected_argument import ExpectedArgument, check_all
from magnetar.client.rest import Rest
from magnetar.security.credentials.method import NOBODY, ClientCredentials

if TYPE_CHECKING:
    from magnetar.security.tls.client_tls import ClientTls

SECONDS: Final = 60.0
AT_ONCE: Final = 16


def _are_credentials(given: Any) -> bool:
    return not isinstance(given, type) and callable(given.data) and hasattr(given, "method")


def _is_tls(given: Any) -> bool:
    return given is None or (not isinstance(given, type) and hasattr(given, "trust_file"))


_PARAMETERS: Final = {
    "url": kinds.text("http://host:port or https://host:port"),
    "credentials": ExpectedArgument("credentials of magnetar.security.credentials", _are_credentials, secret=True),
    "tls": ExpectedArgument("a ClientTls, or None,", _is_tls),
    "seconds": kinds.number(0, kinds.SECONDS_MAX, "seconds", above=True),
    "redirects_to": kinds.sequence("a list of hosts", kinds.is_text),
    "at_once": kinds.whole(1, kinds.INT32_MAX),
}


def _check(where: str, **given: object) -> None:
    """Raise ArgumentError about the first argument that does not fit."""
    check_all(_PARAMETERS, given, where)


class Admin(Groups):
    """A blocking client of the admin interface of magnetar and Apache Pulsar; threads may share it.

    ``url``: http://host:port or https://host:port. ``credentials``: of :mod:`magnetar.security.credentials`, which name
    secrets and do not hold them. ``tls``: the authorities that are trusted, for https. ``seconds``: how long an answer
    may take. ``redirects_to``: hosts of other brokers that may have the credentials, too.
    """

    def __init__(
        self,
        url: str = "http://localhost:8080",
        *,
        credentials: ClientCredentials = NOBODY,
        tls: ClientTls | None = None,
        seconds: float = SECONDS,
        redirects_to: Sequence[str] = (),
    ) -> None:
        _check("Admin", url=url, credentials=credentials, tls=tls, seconds=seconds, redirects_to=redirects_to)
        super().__init__(BlockingTransport(Rest(url.rstrip("/"), credentials, tls, seconds), redirects_to))


class AsyncAdmin(AsyncGroups):
    """The same for asyncio: every operation is awaited, and may be cancelled; at most ``at_once`` are under way."""

    def __init__(
        self,
        url: str = "http://localhost:8080",
        *,
        credentials: ClientCredentials = NOBODY,
        tls: ClientTls | None = None,
        seconds: float = SECONDS,
        redirects_to: Sequence[str] = (),
        at_once: int = AT_ONCE,
    ) -> None:
        _check(
            "AsyncAdmin", url=url, credentials=credentials, tls=tls, seconds=seconds, redirects_to=redirects_to,
            at_once=at_once,
        )  # fmt: skip
        super().__init__(AsyncioTransport(Rest(url.rstrip("/"), credentials, tls, seconds), redirects_to, at_once))
