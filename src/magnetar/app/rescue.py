"""``magnetar rescue``: what only an operator may decide about a damaged directory of a broker that is not running."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from magnetar.model.errors import MagnetarError, PersistenceError
from magnetar.runtime.command_line import commands, directory

app = commands(
    "Decide what a damaged directory leaves to an operator.",
    example="Example: magnetar rescue metadata data",
)


@app.callback()
def rescue() -> None:
    """Decide what a damaged directory leaves to an operator."""


@app.command(epilog="Example: magnetar rescue metadata data")
def metadata(
    directory: Annotated[
        Path, typer.Argument(parser=directory, help="A data directory of a broker that is not running.")
    ],
    accept: Annotated[
        bool, typer.Option("--accept", help="Take the facts as they are: deletes by them again.")
    ] = False,
) -> None:
    """Show tenants, policies and partition counts of a directory whose metadata is in doubt, and accept them."""
    try:
        from asyncio import run

        doubt = run(_look(directory, accept))
    except (MagnetarError, OSError) as error:
        print(f"magnetar: {error}", file=sys.stderr)
        raise typer.Exit(1) from None
    if doubt is not None:
        raise typer.Exit(1)


async def _look(directory: Path, accept: bool) -> str | None:
    """The doubt that stays."""
    from magnetar.app.data_directory import DataDirectory, older_facts
    from magnetar.storage.backends.directory import is_directory
    from magnetar.storage.backends.files import OsFileSystem
    from magnetar.storage.backends.local_journal import take
    from magnetar.storage.directory_format import refuse_newer, require_store
    from magnetar.storage.metadata_log.metadata_log import MetadataLog

    if not is_directory(str(directory / "ledgers")):
        raise PersistenceError(f"there is no directory {directory / 'ledgers'}")
    if not older_facts(directory):  # before anything is locked, or closed to others
        require_store(OsFileSystem(str(directory / "ledgers"), only_read=True), str(directory / "ledgers"))
    home = DataDirectory(directory)
    files = OsFileSystem(str(directory / "ledgers"))
    try:
        take(files)
        refuse_newer(files)
        if home.older(files):
            raise PersistenceError(
                f"the metadata of {directory} are still an older version's (metadata.sqlite): start a broker on it "
                "once, it takes them over"
            )
        log = MetadataLog(files)
        for text in log.damage:
            print(f"DAMAGED: {text}")
        for path, record in log.records():
            print(f"{path} {record.data.decode(errors='replace')}")
        if accept and log.doubt is not None:
            log.accept()
            print("accepted: the broker deletes by these facts again")
        print("no doubt about the metadata" if log.doubt is None else f"IN DOUBT: {log.doubt}")
        if log.doubt is not None:
            print("nothing is deleted by these facts; set right what is wrong over REST, then accept: --accept")
        await log.close()
        return log.doubt
    finally:
        files.unlock()
        home.close()
