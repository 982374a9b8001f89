"""How jobs name their broker and reach topics: with the flags of the other commands, or in a directory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from magnetar.contexts.flags import WebUrl, help_of
from magnetar.model.errors import InvalidValueError

if TYPE_CHECKING:
    from magnetar.client.login import ClientLogin
    from magnetar.client.rest import Rest
    from magnetar.contexts.broker_connection import BrokerConnection
    from magnetar.jobs.reader.units import Access

JobWebUrl = Annotated[
    str | None, typer.Option("--admin-url", "--web-url", "--admin", help=help_of(WebUrl), metavar="URL")
]
"""``--admin`` is what replay and report called it first."""
WebUrlOfDirectory = Annotated[
    str | None,
    typer.Option(
        "--admin-url",
        "--web-url",
        "--rest",
        help="The HTTP address of the broker whose directory --data is; or --context.",
        metavar="URL",
    ),
]
"""``--rest`` is what offload and compact called it first."""


def broker(
    url: str | None,
    web_url: str | None,
    token: str | None,
    client_conf: str | None,
    context: str | None,
    *,
    both: bool = False,
) -> BrokerConnection:
    """Return the broker of a command; ``both``: the command uses both its interfaces. Raises InvalidValueError."""
    from magnetar.contexts.broker_connection import ConnectionFlags, connection, connection_of_both

    flags = ConnectionFlags(service_url=url, web_url=web_url, token=token, client_conf=client_conf, context=context)
    return connection_of_both(flags, "--url") if both else connection(flags)


def rest_of(web_url: str | None, token: str | None, client_conf: str | None, context: str | None) -> Rest:
    """Return the REST interface of the broker of a command. Raises InvalidValueError."""
    found = broker(None, web_url, token, client_conf, context)
    return found.login.rest(found.web_url)


def rest_of_directory(web_url: str | None, token: str | None, client_conf: str | None, context: str | None) -> Rest:
    """Return the REST interface of the broker whose data directory a command reads and whose topics it changes.

    The one in use is not taken: it need not be that one. Raises InvalidValueError.
    """
    if web_url is None and context is None:
        raise InvalidValueError("name the broker whose directory --data is, with --admin-url or --context")
    return rest_of(web_url, token, client_conf, context)


def access(url: str | None, login: ClientLogin, data: Path | None, patience: float) -> Access:
    """Return how topics are reached; without a URL, in the directory only."""
    from magnetar.jobs.reader.units import Access

    return Access(url=url, directory=None if data is None else str(data), login=login, operation_timeout=patience)


def access_of(
    url: str | None, data: Path | None, token: str | None, client_conf: str | None, context: str | None, patience: float
) -> Access:
    """Return how a command reaches topics: a directory alone needs no broker, whichever may be in use."""
    from magnetar.client.login import UNKNOWN

    if data is not None and url is None and context is None:
        return access(None, UNKNOWN, data, patience)
    found = broker(url, None, token, client_conf, context)
    return access(found.service_url, found.login, data, patience)
