"""The flags by which commands say who they are: pulsar-admin's before the command, and ``--token`` behind it.

What the commands ask a broker for goes through `login`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

if TYPE_CHECKING:
    from magnetar.client.login import ClientLogin

TOKEN_VARIABLE: Final = "PULSAR_TOKEN"

Token = Annotated[
    str | None,
    typer.Option(
        help=f"Log in by the token from env:NAME, file:/path or command:PROGRAM; env:{TOKEN_VARIABLE} if that is set.",
        metavar="REFERENCE",
    ),
]
AuthPlugin = Annotated[str | None, typer.Option(help="Pulsar's class of a login.", metavar="CLASS")]
AuthParams = Annotated[str | None, typer.Option(help="Its parameters, with references for secrets.", metavar="TEXT")]
ClientConfFile = Annotated[
    str | None, typer.Option("--client-conf", help="Pulsar's client.conf: login and TLS.", metavar="FILE")
]
TrustCerts = Annotated[str | None, typer.Option(help="Certificates that are trusted, PEM.", metavar="FILE")]
AllowInsecure = Annotated[
    bool, typer.Option("--tls-allow-insecure", help="Take any certificate: for experiments only.")
]

_given: Final[dict[str, Any]] = {}
"""What was given before the command that runs; a process runs one."""


def note_login(
    context: typer.Context,
    auth_plugin: AuthPlugin = None,
    auth_params: AuthParams = None,
    client_conf: ClientConfFile = None,
    tls_trust_cert_path: TrustCerts = None,
    allow_insecure: AllowInsecure = False,
) -> None:
    """Keep what was given before a command; it is the callback of a set of commands."""
    context.call_on_close(_given.clear)
    _given.update(
        auth_plugin=auth_plugin,
        auth_params=auth_params,
        client_conf=client_conf and os.path.abspath(client_conf),
        trust=tls_trust_cert_path and os.path.abspath(tls_trust_cert_path),
        allow_insecure=allow_insecure or None,
    )


def login(token: str | None = None) -> ClientLogin:
    """Return what the flags of the running command say. Raises InvalidValueError."""
    from magnetar.client.login import ClientLogin

    given = dict(_given)
    if token is None and TOKEN_VARIABLE in os.environ and not given.get("auth_plugin") and not given.get("client_conf"):
        token = f"env:{TOKEN_VARIABLE}"
    return ClientLogin(token=token, **given)
