"""``magnetar lake``: history, topic positions and upkeep of tables, at a prompt."""

from __future__ import annotations

import datetime as dt
import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

import typer

from magnetar.model.errors import InvalidValueError, MagnetarError
from magnetar.runtime.command_line import commands, complain, directory_name

if TYPE_CHECKING:
    from magnetar.lakehouse.lake import Lake
    from magnetar.lakehouse.model.history import Commit

app = commands(
    "Tables that streams of topics are written to.",
    example="Example: magnetar lake history /lake/flights",
)
WEEK: Final = 168.0
_ONLY_READ: Final = "nothing was changed"
_COMPACTING: Final = (
    "the table is whole, with its files as they were or put together; what no version needs of this attempt goes with: "
    "magnetar lake vacuum {}"
)
_VACUUMING: Final = "the table is whole; the same command removes the other files"

Path = Annotated[str, typer.Argument(parser=directory_name, metavar="PATH", help="Directory or URL of the table.")]
Kind = Annotated[str | None, typer.Option(help="parquet, delta or iceberg; found out if not given.")]
Options = Annotated[
    list[str] | None,
    typer.Option("--option", help="As for the sink, name=value (storage.*, catalog.*, table); may be repeated."),
]
Version = Annotated[int | None, typer.Option(help="As it was at this version.")]
_T = TypeVar("_T")
At = Annotated[str | None, typer.Option(help="As it was at this time, milliseconds or ISO 8601.")]


@app.command(epilog="Example: magnetar lake history /lake/flights")
def history(path: Path, kind: Kind = None, option: Options = None) -> None:
    """One line per commit, oldest first: version, time, operation, rows, query and micro-batch."""
    for commit in _call(path, kind, option, lambda lake: lake.history()):
        typer.echo(line_of(commit))


@app.command(epilog="Example: magnetar lake positions /lake/flights --version 1")
def positions(
    path: Path,
    version: Version = None,
    at: At = None,
    query: Annotated[str | None, typer.Option(help="Id of the query, if several write the table.")] = None,
    kind: Kind = None,
    option: Options = None,
) -> None:
    """How far the topics were read, as JSON for startingOffsets and endingOffsets."""
    typer.echo(_call(path, kind, option, lambda lake: lake.offsets(version, at, query)))


@app.command(epilog="Example: magnetar lake holding /lake/flights persistent://public/default/flights 12:400")
def holding(
    path: Path,
    topic: Annotated[str, typer.Argument(help="Topic-partition, as `positions` names it.")],
    place: Annotated[str, typer.Argument(help="ledger:entry or ledger:entry:batch.")],
    kind: Kind = None,
    option: Options = None,
) -> None:
    """The first version that holds a message; exit 1 if none does."""
    found = _call(path, kind, option, lambda lake: lake.version_holding(topic, place))
    typer.echo("none" if found is None else str(found))
    if found is None:
        raise typer.Exit(1)


@app.command(epilog="Example: magnetar lake verify /lake/flights")
def verify(path: Path, kind: Kind = None, option: Options = None) -> None:
    """Read every file that the newest version names; exit 1 if one is gone, shorter, elsewhere, or cannot be read."""
    found = _call(path, kind, option, lambda lake: lake.verify())
    for name, what in sorted(found.wrong.items()):
        typer.echo(_escaped(f"WRONG: {name} {what}"))
    for name in found.elsewhere:
        typer.echo(_escaped(f"NOT LOOKED AT: {name} is not below {path}"))
    unseen = f", {len(found.elsewhere):,} not looked at" if found.elsewhere else ""
    typer.echo(f"{found.files:,} files, {found.rows:,} rows read, {len(found.wrong):,} files wrong{unseen}")
    if found.wrong or found.elsewhere:
        raise typer.Exit(1)


@app.command(epilog="Example: magnetar lake compact /lake/flights")
def compact(path: Path, kind: Kind = None, option: Options = None) -> None:
    """Put small files together; streams may write meanwhile."""
    done = _call(path, kind, option, lambda lake: lake.compact(), _COMPACTING.format(shlex.quote(path)))
    if done.version is None:
        typer.echo("nothing to put together")
    else:
        typer.echo(f"version {done.version}: {done.removed} files became {done.added}")


@app.command(epilog="Example: magnetar lake vacuum /lake/flights --hours 168")
def vacuum(
    path: Path,
    hours: Annotated[float, typer.Option(help="Keep what versions of so many hours need.", min=0)] = WEEK,
    dry: Annotated[bool, typer.Option("--dry", help="Only say what would go.")] = False,
    kind: Kind = None,
    option: Options = None,
) -> None:
    """Remove files that no version needs, and those of attempts that failed."""
    gone = _call(path, kind, option, lambda lake: lake.vacuum(hours, dry=dry), _ONLY_READ if dry else _VACUUMING)
    for name in gone:
        typer.echo(_escaped(name))
    typer.echo(f"{len(gone)} files {'would go' if dry else 'are gone'}")


def line_of(commit: Commit) -> str:
    """Return a commit as a line of columns."""
    try:
        time = dt.datetime.fromtimestamp(commit.time_ms / 1000, dt.UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):  # a moment that no calendar has
        time = f"{commit.time_ms} ms"
    rows = "" if commit.rows is None else f"{commit.rows} rows"
    owner = "" if commit.app is None else f"{commit.app} #{commit.batch}"
    line = f"{commit.version:>8}  {time}  {commit.operation:<12}  {rows:>16}  {owner}"
    return _escaped(line.replace("\n", " ").rstrip())


def _call(
    path: str, kind: str | None, option: list[str] | None, act: Callable[[Lake], _T], interrupted: str = _ONLY_READ
) -> _T:
    """Return what a table answers; ``interrupted`` is what a signal leaves."""
    from magnetar.lakehouse.abandonable_work import done_or_abandoned
    from magnetar.lakehouse.lake import open_lake
    from magnetar.lakehouse.model.library_reason import reason_of

    try:
        return done_or_abandoned(lambda: act(open_lake(path, kind, _options(option or []))), interrupted)
    except ModuleNotFoundError:  # the group says what to install
        raise
    except MagnetarError as error:
        said = str(error)
    except Exception as error:  # the libraries of tables raise what they like: for rights, networks, damage, options
        said = (
            f"{path}: {reason_of(error)}; may this user read and write there, is the table whole, and do --kind and "
            "--option (storage.*, catalog.*) fit it?"
        )
    complain(said)
    raise typer.Exit(1)


def _options(given: list[str]) -> dict[str, str]:
    options = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals:
            raise InvalidValueError(f"--option {one}: write name=value")
        options[name] = value
    return options


def _escaped(text: str) -> str:
    from magnetar.runtime.harmless_text import one_line  # no page of help needs it

    return one_line(text)
