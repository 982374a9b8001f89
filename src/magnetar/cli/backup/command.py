"""``magnetar backup``: the state of one moment, of a broker that runs or of one that does not (docs/backup.md)."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from magnetar.contexts.broker_connection import step_after
from magnetar.contexts.flags import AuthParams, AuthPlugin, ClientConfFile, Context, Token, Trust, WebUrl
from magnetar.model.errors import MagnetarError
from magnetar.runtime.command_line import commands, complain, directory_name, found_from_here, interruption_said

app = commands("Back a broker up.")


@app.command()
def backup(
    to: Annotated[
        str,
        typer.Argument(
            parser=directory_name,
            help="Of a running broker a name, which it makes below its backupDirectory; with --data a directory that "
            "is empty or missing.",
            metavar="TO",
        ),
    ],
    data: Annotated[
        str | None,
        typer.Option(
            parser=found_from_here, help="The data directory of a broker that is not running.", metavar="DIRECTORY"
        ),
    ] = None,
    admin_url: WebUrl = None,
    auth_plugin: AuthPlugin = None,
    auth_params: AuthParams = None,
    trust: Trust = None,
    context: Context = None,
    client_conf: ClientConfFile = None,
    token: Token = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Back up all messages, acknowledgements, policies and schemas as of one moment; of a stopped broker with --data
    data /backups/monday. Example: magnetar backup monday"""
    try:
        if data is not None:
            from magnetar.storage.backup.data_directories import back_up_directory

            with interruption_said(f"nothing was left at {to}"):
                made = back_up_directory(data, found_from_here(to))
            result = {"name": to, "status": "SUCCESS", "bytes": made.bytes, "files": len(made.files)}
        else:
            from magnetar.cli.backup.broker_backup import back_up_broker
            from magnetar.contexts.broker_connection import ConnectionFlags

            flags = ConnectionFlags(
                context=context, client_conf=client_conf, web_url=admin_url, token=token, auth_plugin=auth_plugin,
                auth_params=auth_params, trust=trust,
            )  # fmt: skip
            result = back_up_broker(flags, to)
    except (MagnetarError, OSError) as error:
        complain(error)
        if step := step_after(error):
            complain(f"{step}; of one that is stopped: magnetar backup --data DIRECTORY TO", lead="")
        raise typer.Exit(1) from None
    typer.echo(json.dumps(result) if as_json else f"backup {to} is whole: {result['bytes']} bytes")
