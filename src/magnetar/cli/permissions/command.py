"""``magnetar permissions``: may a role do something, why, and what would change it (decision 032)."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from magnetar.client.login_flags import ClientConfFile, Token, login
from magnetar.model.errors import MagnetarError
from magnetar.runtime.command_line import commands

app = commands("Who may do what, and why.")

REFUSED = 3
"""The exit status of a question that is answered with no."""


@app.callback()
def permissions() -> None:
    """Who may do what, and why."""


@app.command()
def explain(
    role: Annotated[str, typer.Argument(help="Whom the question is about.")],
    operation: Annotated[
        str,
        typer.Argument(
            help="An operation (produce, clear-backlog, set-retention), a command of the wire (SUBSCRIBE) or a request "
            "('PUT /admin/v2/persistent/acme/orders/t/unload')."
        ),
    ],
    target: Annotated[
        str | None,
        typer.Argument(metavar="[OBJECT]", help="TOPIC, TOPIC/SUBSCRIPTION, a full name, TENANT/NAMESPACE or TENANT."),
    ] = None,
    tenant: Annotated[str | None, typer.Option(help="The tenant, instead of OBJECT.")] = None,
    namespace: Annotated[str | None, typer.Option(help="The namespace, as tenant/namespace.")] = None,
    topic: Annotated[str | None, typer.Option(help="The topic; short names lie in public/default.")] = None,
    subscription: Annotated[str | None, typer.Option(help="The subscription of the topic.")] = None,
    original: Annotated[
        str | None, typer.Option(help="The principal that the role speaks for, if it is a proxy.", metavar="ROLE")
    ] = None,
    admin_url: Annotated[str, typer.Option(help="The broker's HTTP address.")] = "http://localhost:8080",
    token: Token = None,
    client_conf: ClientConfFile = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the broker's answer as it is.")] = False,
) -> None:
    """May this role do that? Exits with 0 for yes and 3 for no."""
    from magnetar.cli.permissions.question import in_words, question_path

    named = {"tenant": tenant, "namespace": namespace, "topic": topic, "subscription": subscription}
    try:
        path = question_path(role, operation, target, named, original)
        answer = login(token, client_conf).rest(admin_url).ask("GET", path)
    except (MagnetarError, OSError, ValueError) as error:
        typer.echo(f"magnetar: {error}", err=True)
        raise typer.Exit(1) from None
    typer.echo(json.dumps(answer, indent=2) if as_json else "\n".join(in_words(answer)))
    raise typer.Exit(0 if answer["allowed"] else REFUSED)
