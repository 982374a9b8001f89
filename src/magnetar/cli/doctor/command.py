"""``magnetar doctor``: what is wrong here, and what to do about it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from magnetar.contexts.flags import ClientConfFile, Context, Token, WebUrl
from magnetar.model.errors import MagnetarError
from magnetar.runtime.command_line import commands, complain, directory

app = commands("What is wrong here, and what to do about it.")
_SECONDS = 4.0


@app.command(
    epilog="Example: magnetar doctor   # everything but a broker\n\n"
    "Example: magnetar doctor --only broker   # 0 if one answers"
)
def doctor(
    data: Annotated[Path, typer.Option(parser=directory, help="Where the broker keeps its data, or would.")] = Path(
        "data"
    ),
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CHECK",
            help="One of python, clock, memory, descriptors, disk, ports, java, spark, broker; may be repeated. "
            "Without it: all, but broker only if an option names one: the absence of another is no fault.",
        ),
    ] = None,
    admin_url: WebUrl = None,
    token: Token = None,
    client_conf: ClientConfFile = None,
    context: Context = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the symptoms as JSON.")] = False,
) -> None:
    """Look at this machine and at a broker; exit 1 if something does not work, 0 if it does, also with warnings."""
    from magnetar.cli.doctor.checks import NAMES, ThisMachine
    from magnetar.cli.doctor.symptom import Level
    from magnetar.contexts.broker_connection import ConnectionFlags, connection
    from magnetar.runtime.clock import SystemClock
    from magnetar.runtime.harmless_text import one_line

    unknown = [name for name in only or () if name not in NAMES]
    if unknown:
        complain(f"--only {unknown[0][:80]}: no such check; there are {', '.join(NAMES)}")
        raise typer.Exit(2)
    try:
        flags = ConnectionFlags(web_url=admin_url, token=token, client_conf=client_conf, context=context)
        rest = connection(flags).rest(_SECONDS)
    except MagnetarError as error:
        complain(error)
        raise typer.Exit(1) from None
    named = any((admin_url, token, client_conf, context))
    wanted = only or [name for name in NAMES if name != "broker" or named]
    symptoms = list(ThisMachine(data, rest, SystemClock()).symptoms(wanted))
    if as_json:
        typer.echo(json.dumps([one._asdict() for one in symptoms], indent=2))
    else:
        width = max(len(one.check) for one in symptoms)
        for one in symptoms:
            typer.echo(f"{one.level:<8} {one.check:<{width}}  {one_line(one.says)}")
            if one.next_step:
                typer.echo(f"{'':<8} {'':<{width}}  → {one_line(one.next_step)}")
    if any(one.level is Level.FAILURE for one in symptoms):
        raise typer.Exit(1)
