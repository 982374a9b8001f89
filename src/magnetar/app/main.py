"""The ``magnetar`` command: arguments, signals, one process.

Heavy parts are imported when they are needed, so that help answers at once.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from magnetar.model.errors import MagnetarError

app = typer.Typer(
    help="Apache Pulsar's messaging in Python.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def magnetar() -> None:
    """Apache Pulsar's messaging in Python."""


@app.command()
def standalone(
    data: Annotated[Path, typer.Option(help="Where everything is kept; created if missing.")] = Path("data"),
    conf: Annotated[Path | None, typer.Option(help="A broker.conf or standalone.conf of Apache Pulsar.")] = None,
    setting: Annotated[
        list[str] | None, typer.Option("--set", help="One setting, name=value; may be repeated.", metavar="NAME=VALUE")
    ] = None,
) -> None:
    """Run a broker with its own embedded store in this process; Ctrl-C stops it."""
    from magnetar.app.standalone import run
    from magnetar.runtime import config
    from magnetar.runtime.log import set_up

    set_up()
    try:
        configuration = config.load(file=conf, environment=os.environ, flags=setting or [])
        for notice in configuration.notices:
            print(notice)
        run(data, configuration.settings)
    except (MagnetarError, OSError) as error:
        print(f"magnetar: {error}", file=sys.stderr)
        raise typer.Exit(1) from None


def main() -> None:
    """Entry point of the ``magnetar`` script."""
    app(prog_name="magnetar")


if __name__ == "__main__":
    main()
