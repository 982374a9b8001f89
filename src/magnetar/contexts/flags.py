"""The flags by which commands say which broker they use and who they are: declared once, for all commands.

They are those of Pulsar's tools, and ``--context``. ``magnetar admin`` and ``magnetar perf`` make their flags of rows,
which take the texts from here (``help_of``).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from magnetar.contexts.broker_connection import TOKEN_VARIABLE, require_said

if TYPE_CHECKING:
    from magnetar.client.login import ClientLogin

ServiceUrl = Annotated[
    str | None,
    typer.Option(
        "--service-url",
        "--url",
        "-u",
        help="The broker, pulsar://localhost:6650 if nothing says another.",
        metavar="URL",
    ),
]
WebUrl = Annotated[
    str | None,
    typer.Option(
        "--admin-url",
        "--web-url",
        help="The broker's HTTP address, http://localhost:8080 if nothing says another.",
        metavar="URL",
    ),
]
Context = Annotated[
    str | None, typer.Option("--context", help="A saved connection (magnetar contexts).", metavar="NAME")
]
ClientConfFile = Annotated[
    str | None,
    typer.Option(
        "--client-conf",
        help="Pulsar's client.conf: where the broker is, how to log in, and what TLS checks.",
        metavar="FILE",
    ),
]
Token = Annotated[
    str | None,
    typer.Option(
        "--token",
        help=f"Log in by the token from env:NAME, file:/path or command:PROGRAM; env:{TOKEN_VARIABLE} if that is set.",
        metavar="REFERENCE",
    ),
]
AuthPlugin = Annotated[
    str | None,
    typer.Option("--auth-plugin", "--auth_plugin", help="The class of the login, as Pulsar names it.", metavar="CLASS"),
]
AuthParams = Annotated[str | None, typer.Option("--auth-params", help="Parameters of the login.", metavar="TEXT")]
Trust = Annotated[
    str | None,
    typer.Option(
        "--trust-cert-file",
        "--tlsTrustCertsFilePath",
        help="Certificates of the authorities that are trusted, PEM.",
        metavar="FILE",
    ),
]
ListenerName = Annotated[
    str | None, typer.Option("--listener-name", help="Which of a broker's addresses to use.", metavar="NAME")
]


def help_of(flag: Any) -> str:
    """Return the help of one of these flags, for commands whose flags are rows."""
    return str(get_args(flag)[1].help)


def login(token: str | None = None, client_conf: str | None = None) -> ClientLogin:
    """Return what flags say, which may name files of the current directory. Raises InvalidValueError."""
    from magnetar.client.login import ClientLogin
    from magnetar.contexts.context import absolute
    from magnetar.security.credentials.secret import absolute_reference

    require_said("--token", token)
    require_said("--client-conf", client_conf)
    if token is None and client_conf is None and TOKEN_VARIABLE in os.environ:
        token = f"env:{TOKEN_VARIABLE}"
    if token is not None:
        token = absolute_reference(token, absolute)
    return ClientLogin(token=token, client_conf=None if client_conf is None else absolute(client_conf))
