"""``magnetar rescue``: what only an operator may decide about a damaged directory of a broker that is not running."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from magnetar.model.errors import MagnetarError, PersistenceError
from magnetar.runtime.command_line import commands, complain, directory

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
        doubt = _accept(directory) if accept else _look(directory)
    except (MagnetarError, OSError) as error:
        complain(error)
        raise typer.Exit(1) from None
    if doubt is not None:
        raise typer.Exit(1)


def _look(directory: Path) -> str | None:
    """Show the facts and return the doubt about them; nothing is written, so the disk may be one that is only read."""
    from magnetar.app.data_directory import older_facts
    from magnetar.storage.backends.files import OsFileSystem
    from magnetar.storage.directory_format import refuse_newer
    from magnetar.storage.metadata_log.metadata_log import examine
    from magnetar.storage.metadata_log.metadata_scan import COPIES

    _require(directory)
    files = OsFileSystem(str(directory / "ledgers"), only_read=True)
    try:
        files.lock()
    except BlockingIOError:
        raise PersistenceError(f"{directory} is in use; stop the broker first") from None
    try:
        refuse_newer(files)
        if older_facts(directory) and not any(name in files.names() for name in COPIES):
            raise _older(directory)
        facts = examine(files).facts
    finally:
        files.unlock()
    known = {change.path: change.data for change in facts.changes}
    _show(facts.damage, [(path, data) for path, data in sorted(known.items()) if data is not None], facts.doubt)
    return facts.doubt


def _accept(directory: Path) -> str | None:
    """Show the facts, mended, and take them as they are."""
    from magnetar.app.data_directory import DataDirectory
    from magnetar.storage.backends.files import OsFileSystem
    from magnetar.storage.backends.local_journal import take
    from magnetar.storage.directory_format import refuse_newer
    from magnetar.storage.metadata_log.metadata_log import MetadataLog

    _require(directory)
    home = DataDirectory(directory)
    files = OsFileSystem(str(directory / "ledgers"))
    try:
        take(files)
        refuse_newer(files)
        if home.older(files):
            raise _older(directory)
        log = MetadataLog(files)
        doubted = log.doubt is not None
        try:
            if doubted:
                log.accept()
            _show(log.damage, [(path, record.data) for path, record in log.records()], log.doubt, accepted=doubted)
            return log.doubt
        finally:
            log.let_go()
    finally:
        files.unlock()
        home.close()


def _require(directory: Path) -> None:
    """Refuse what is no broker's directory before anything is locked, or closed to others. Raises PersistenceError."""
    from magnetar.app.data_directory import older_facts
    from magnetar.storage.backends.directory import is_directory
    from magnetar.storage.backends.files import OsFileSystem
    from magnetar.storage.directory_format import require_store

    ledgers = str(directory / "ledgers")
    if not is_directory(ledgers):
        raise PersistenceError(f"there is no directory {ledgers}")
    if not older_facts(directory):
        require_store(OsFileSystem(ledgers, only_read=True), ledgers)


def _older(directory: Path) -> PersistenceError:
    return PersistenceError(
        f"the metadata of {directory} are still an older version's (metadata.sqlite): start a broker on it once, it "
        "takes them over"
    )


def _show(
    damage: Sequence[str], facts: Sequence[tuple[str, bytes]], doubt: str | None, *, accepted: bool = False
) -> None:
    from magnetar.runtime.harmless_text import one_line

    for text in damage:
        print(one_line(f"DAMAGED: {text}"))
    for path, data in facts:
        print(one_line(f"{path} {data.decode(errors='replace')}"))
    if accepted:
        print("accepted: the broker deletes by these facts again")
    print("no doubt about the metadata" if doubt is None else one_line(f"IN DOUBT: {doubt}"))
    if doubt is not None:
        print("nothing is deleted by these facts; set right what is wrong over REST, then accept: --accept")
