"""``magnetar permissions``: may a role do something, why, and what would change it (decision 032)."""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Iterable
from typing import Annotated

import typer

from magnetar.contexts.flags import ClientConfFile, Context, ServiceUrl, Token, WebUrl
from magnetar.model.errors import MagnetarError
from magnetar.runtime.command_line import commands, complain, ending_signals

app = commands(
    "Who may do what, and why.",
    example="Example: magnetar permissions explain alice produce orders",
)

_PATIENCE_S = 600.0

REFUSED = 3
"""The exit status of a question that is answered with no."""


@app.callback()
def permissions() -> None:
    """Who may do what, and why."""


@app.command(epilog="Example: magnetar permissions explain alice clear-backlog public/default/orders/billing")
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
    admin_url: WebUrl = None,
    token: Token = None,
    client_conf: ClientConfFile = None,
    context: Context = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the broker's answer as it is.")] = False,
) -> None:
    """May this role do that? Exits with 0 for yes and 3 for no."""
    from magnetar.cli.permissions.question import in_words, question_path, read_as
    from magnetar.contexts.broker_connection import ConnectionFlags, connection, step_after

    named = {"tenant": tenant, "namespace": namespace, "topic": topic, "subscription": subscription}
    try:
        path = question_path(role, operation, target, named, original)
        flags = ConnectionFlags(web_url=admin_url, token=token, client_conf=client_conf, context=context)
        answer = connection(flags).rest(_PATIENCE_S).ask("GET", path)
    except (MagnetarError, OSError, ValueError) as error:
        complain(error)
        if step := step_after(error):
            complain(step, lead="")
        raise typer.Exit(1) from None
    if as_json:
        typer.echo(json.dumps(answer, indent=2))
    else:
        _say(in_words(answer, read_as(operation, target)))
    raise typer.Exit(0 if answer["allowed"] else REFUSED)


def _say(lines: Iterable[str]) -> None:
    from magnetar.runtime.harmless_text import one_line

    typer.echo("\n".join(map(one_line, lines)))


def _end_on_signals() -> None:
    """Let SIGTERM, and SIGHUP unless it is ignored, end the command as Ctrl-C does, so that it cleans up."""
    if threading.current_thread() is threading.main_thread():
        for number in ending_signals():
            signal.signal(number, lambda number, _: sys.exit(128 + number))


@app.command(
    "self-test",
    epilog="Example: magnetar permissions self-test --secret-key file:///etc/pulsar/secret.key --superuser admin "
    "--token file:admin.token",
)
def self_test(
    superuser: Annotated[str, typer.Option(help="The role of the login, a superuser.")],
    secret_key: Annotated[
        str | None, typer.Option(help="The broker's tokenSecretKey, with which tokens of scratch roles are made.")
    ] = None,
    private_key: Annotated[
        str | None, typer.Option(help="Instead: the private key of the broker's tokenPublicKey.")
    ] = None,
    algorithm: Annotated[
        str | None, typer.Option(help="The broker's tokenPublicAlg; without it, what the key is used with first.")
    ] = None,
    admin_url: WebUrl = None,
    service_url: ServiceUrl = None,
    token: Token = None,
    client_conf: ClientConfFile = None,
    context: Context = None,
    seconds: Annotated[float, typer.Option(help="Give up after so many seconds.", min=1)] = 120,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the differences only.")] = False,
) -> None:
    """Try every command and every route as every role, in a tenant made for it, and compare with the table.

    The tenant is removed at the end, also when the test is interrupted; nothing else is touched. Exits with 0 if the
    broker does what docs/permissions.md says, and with 3 if not.
    """
    from magnetar.cli.permissions.scratch import scratch_names, scratch_tenants
    from magnetar.cli.permissions.self_test import SelfTest, minted, signing_key
    from magnetar.contexts.broker_connection import ConnectionFlags, connection_of_both

    result, trouble = None, ""
    try:
        broker = connection_of_both(
            ConnectionFlags(
                service_url=service_url, web_url=admin_url, token=token, client_conf=client_conf, context=context
            )
        )
        own = broker.login
        scratch, other = scratch_names(superuser)
        logins = minted(scratch, signing_key(secret_key, private_key, algorithm or ""), own.credentials)
        _end_on_signals()
        with scratch_tenants(broker.rest(_PATIENCE_S), scratch, other):
            result = SelfTest(scratch, logins, own.tls, broker.web_url, broker.service_url, seconds).run()
    except (MagnetarError, OSError, ValueError) as error:
        trouble = str(error)
    if result is not None:
        # also if the tenants could not be removed
        lines = [] if quiet else [*result.lines(), ""]
        counted = f"{result.cases} cases of {len(result.cells)} commands and routes in {result.seconds:.1f} s"
        lines += [*result.differences, f"{counted}: {len(result.differences)} differences"]
        _say(lines)
    if trouble or result is None:
        complain(trouble)
        raise typer.Exit(1)
    raise typer.Exit(REFUSED if result.differences else 0)
