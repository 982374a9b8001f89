"""The flags by which commands say who they are: a reference to a token, or Pulsar's ``client.conf``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from magnetar.contexts.broker_connection import TOKEN_VARIABLE

if TYPE_CHECKING:
    from magnetar.client.login import ClientLogin

Token = Annotated[
    str | None,
    typer.Option(
        help=f"Log in by the token from env:NAME, file:/path or command:PROGRAM; env:{TOKEN_VARIABLE} if that is set.",
        metavar="REFERENCE",
    ),
]
ClientConfFile = Annotated[
    str | None, typer.Option(help="Pulsar's client.conf: how to log in, and what TLS checks.", metavar="FILE")
]


def login(token: str | None = None, client_conf: str | None = None) -> ClientLogin:
    """Return what flags say, which may name files of the current directory. Raises InvalidValueError."""
    from magnetar.client.login import ClientLogin
    from magnetar.security.credentials.secret import absolute_reference

    if token is None and client_conf is None and TOKEN_VARIABLE in os.environ:
        token = f"env:{TOKEN_VARIABLE}"
    if token is not None:
        token = absolute_reference(token, lambda path: os.path.abspath(os.path.expanduser(path)))
    return ClientLogin(token=token, client_conf=None if client_conf is None else os.path.abspath(client_conf))
