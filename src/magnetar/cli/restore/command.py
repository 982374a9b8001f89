"""``magnetar restore``: a backup made a data directory again (docs/backup.md)."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from magnetar.model.errors import MagnetarError
from magnetar.runtime.command_line import commands, complain, found_from_here, interruption_said

app = commands("Make a backup a data directory again.")


@app.command()
def restore(
    source: Annotated[str, typer.Argument(parser=found_from_here, help="The directory of the backup.", metavar="FROM")],
    data: Annotated[
        str,
        typer.Option(parser=found_from_here, help="The data directory to be; empty or missing.", metavar="DIRECTORY"),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Check every byte of a backup, then make it a data directory. Example: magnetar restore /backups/monday --data
    data"""
    from magnetar.storage.backup.data_directories import restore_directory

    try:
        with interruption_said(f"{data} is as it was"):
            manifest = restore_directory(source, data)
    except (MagnetarError, OSError) as error:
        complain(error)
        raise typer.Exit(1) from None
    if as_json:
        typer.echo(json.dumps({"taken": manifest.taken_ms, "bytes": manifest.bytes, "files": len(manifest.files)}))
        return
    typer.echo(f"restored {manifest.bytes} bytes in {len(manifest.files)} files to {data}")
