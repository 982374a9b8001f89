"""The ``magnetar`` command: arguments, signals, one process.

Heavy parts are imported when they are needed, so that help answers at once; help is plain text, because Rich takes
longer than all else.
"""

from __future__ import annotations

import errno
import importlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Final

import typer

from magnetar import __version__
from magnetar.app.rescue import app as rescue_app
from magnetar.app.typed_words import helped, in_order, passed_whole
from magnetar.model.errors import InvalidValueError, MagnetarError, PersistenceError
from magnetar.runtime.command_line import HeadedGroup, commands, complain, directory, file_name, not_text, written

if TYPE_CHECKING:
    from magnetar.config.configuration import Configuration


class Overview(HeadedGroup):
    """What ``magnetar --help`` lists."""

    headings: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "A broker": ("standalone", "config", "tokens", "doctor", "verify", "rescue", "backup", "restore"),
        "Messages": ("produce", "consume", "read", "sql", "perf"),
        "Operating": ("admin", "explain", "permissions", "contexts", "completion"),
        "Spark": ("pipeline", "lake", "jobs"),
    }


app = commands(
    "Apache Pulsar's messaging in Python.", Overview, example='Example: magnetar produce orders -m "10 apples"'
)


Conf = Annotated[
    Path | None,
    typer.Option(parser=file_name, help="A broker.conf or standalone.conf of Apache Pulsar.", metavar="FILE"),
]


def _say_version(wanted: bool) -> None:
    if wanted:
        print(f"magnetar {__version__}")
        raise typer.Exit


@app.callback()
def magnetar(
    version: Annotated[
        bool, typer.Option("--version", help="Say which release this is.", callback=_say_version, is_eager=True)
    ] = False,
) -> None:
    """Apache Pulsar's messaging in Python."""


@app.command(epilog="Example: magnetar standalone --data data --set brokerDeduplicationEnabled=true")
def standalone(
    data: Annotated[Path, typer.Option(parser=directory, help="Where everything is kept; created if missing.")] = Path(
        "data"
    ),
    conf: Conf = None,
    setting: Annotated[
        list[str] | None, typer.Option("--set", help="One setting, name=value; may be repeated.", metavar="NAME=VALUE")
    ] = None,
) -> None:
    """Run a broker with its own embedded store in this process; Ctrl-C stops it."""
    from magnetar.app.standalone import announce, run
    from magnetar.config import configuration as config
    from magnetar.runtime.log import set_up

    set_up()
    try:
        configuration = config.load(file=conf, environment=os.environ, flags=setting or [])
        if configuration.settings.logFormat == "json":
            set_up(as_json=True)
        _require_place(configuration)
        _require_providers(configuration)
        for notice in configuration.notices:
            announce(notice)
        run(data, configuration.settings)
    except (MagnetarError, OSError) as error:
        complain(error)
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            print(
                "another program listens there, perhaps another broker; this one takes other ports by "
                "--set brokerServicePort=6660 --set webServicePort=8090",
                file=sys.stderr,
            )
        raise typer.Exit(1) from None


def _require_place(configuration: Configuration) -> None:
    """A broker that is configured to offload must be able to. Raises InvalidValueError."""
    url = configuration.settings.offloadUrl
    if url:
        from magnetar.offload.object_store import require_place

        try:
            require_place(url)
        except MagnetarError as error:
            where = configuration.origin.get("offloadUrl", "offloadUrl")
            raise InvalidValueError(f"{where}: offloadUrl: {error}") from None


def _require_providers(configuration: Configuration) -> None:
    """A broker that asks for credentials must be able to judge them, before it touches its data. Raises
    InvalidValueError."""
    if configuration.settings.authenticationEnabled:
        from magnetar.runtime.clock import SystemClock
        from magnetar.security.authentication.configured_providers import authentication_service

        try:
            authentication_service(configuration.settings, SystemClock())
        except MagnetarError as error:
            where = configuration.origin.get(str(error).partition(":")[0])
            raise InvalidValueError(f"{where}: {error}" if where else str(error)) from None


@app.command(epilog="Example: magnetar config --conf broker.conf --changed")
def config(
    conf: Conf = None,
    setting: Annotated[
        list[str] | None, typer.Option("--set", help="One setting, name=value; may be repeated.", metavar="NAME=VALUE")
    ] = None,
    changed: Annotated[bool, typer.Option("--changed", help="Only settings that were changed.")] = False,
    others: Annotated[
        bool, typer.Option("--others", help="Those of Apache Pulsar that have no effect here, and why.")
    ] = False,
) -> None:
    """List every setting that has an effect: its value, who said so, and Pulsar's default where it is another."""
    from magnetar.config.configuration import load
    from magnetar.config.settings_list import others_list, settings_list

    if others:
        for line in others_list():
            print(line)
        return
    try:
        configuration = load(file=conf, environment=os.environ, flags=setting or [])
    except MagnetarError as error:
        complain(error)
        raise typer.Exit(1) from None
    for notice in configuration.notices:
        complain(notice, lead="")
    for line in settings_list(configuration, changed_only=changed):
        print(line)


@app.command(epilog="Example: magnetar verify data")
def verify(
    directory: Annotated[
        Path, typer.Argument(parser=directory, help="A data directory of a broker that is not running.")
    ],
) -> None:
    """Read every byte of a data directory, change nothing, say what is there and what is damaged; exit 1 on damage."""
    from magnetar.app.data_directory import older_facts
    from magnetar.runtime.harmless_text import one_line
    from magnetar.storage.backends.directory import is_directory
    from magnetar.storage.backends.files import OsFileSystem
    from magnetar.storage.directory_format import require_store
    from magnetar.storage.verify import verify as read_everything

    ledgers = directory / "ledgers"
    try:
        place = ledgers if is_directory(str(ledgers)) else directory
        if not is_directory(str(place)):
            raise PersistenceError(f"there is no directory {place}")
        if place == directory and not any(name.startswith("segment-") for name in os.listdir(place)):
            raise PersistenceError(f"{place} is no data directory: it has neither ledgers/ nor segments")
        files, elsewhere = OsFileSystem(str(place), only_read=True), older_facts(place.resolve().parent)
        if not elsewhere:
            require_store(files, str(place))
        report = read_everything(files, elsewhere=elsewhere)
    except (MagnetarError, OSError) as error:
        complain(error)
        raise typer.Exit(1) from None
    for line in (*report.lines, *(f"DAMAGED: {damage}" for damage in report.damage)):
        print(one_line(line))
    print(f"{len(report.damage)} damaged places" if report.damage else "no damage found")
    if report.damage:
        raise typer.Exit(1)


app.add_typer(rescue_app, name="rescue")

PASSED_ON: Final = {
    "jobs": "jobs",
    "pipeline": "pipelines",
    "lake": "lakehouse",
    "tokens": "cli.tokens",
    "permissions": "cli.permissions",
    "explain": "cli.explain",
    "doctor": "cli.doctor",
    "contexts": "cli.contexts",
    "completion": "cli.completion",
    "produce": "cli.messages.produce",
    "consume": "cli.messages.consume",
    "read": "cli.messages.read",
    "sql": "cli.sql",
    "perf": "cli.perf",
    "backup": "cli.backup",
    "restore": "cli.restore",
}
"""Commands that bring commands of their own, and their packages: they get all arguments, so that none of it is imported
before it is asked for."""
_ADMIN: Final = "magnetar.cli.admin.command"
_ALL: Final = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}


def _pass_on(context: typer.Context) -> None:
    from magnetar.runtime.command_line import call_or_show_help

    name = context.info_name or ""
    found = importlib.import_module(f"magnetar.{PASSED_ON[name]}.command")
    try:
        call_or_show_help(found.app, context.args, f"magnetar {name}", alone=name == "doctor")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "magnetar":
            raise
        print(
            f"magnetar: {name} needs {error.name}, which is not installed: "
            "pip install 'magnetar[pipelines]', from a checkout pip install '.[pipelines]'",
            file=sys.stderr,
        )
        raise typer.Exit(1) from None


@app.command(context_settings=_ALL, add_help_option=False)
def jobs(context: typer.Context) -> None:
    """Maintenance jobs on Spark: audit, compare, compact, offload, replay, report."""
    _pass_on(context)


@app.command(context_settings=_ALL, add_help_option=False)
def pipeline(context: typer.Context) -> None:
    """Run, check, plan, watch, verify and replay pipelines on Spark that a YAML file declares."""
    _pass_on(context)


@app.command(context_settings=_ALL, add_help_option=False)
def lake(context: typer.Context) -> None:
    """Tables that streams are written to: history, positions, holding, verify, compact, vacuum."""
    _pass_on(context)


@app.command(context_settings=_ALL, add_help_option=False)
def tokens(context: typer.Context) -> None:
    """Keys and tokens, with the flags of Apache Pulsar's `pulsar tokens`."""
    _pass_on(context)


@app.command(context_settings=_ALL, add_help_option=False)
def permissions(context: typer.Context) -> None:
    """Who may do what, and why."""
    _pass_on(context)


@app.command(context_settings=_ALL, add_help_option=False)
def admin(context: typer.Context) -> None:
    """Operate a broker, with the commands of Apache Pulsar's `pulsar-admin`."""
    importlib.import_module(_ADMIN).app(context.args or ["--help"])


@app.command(context_settings=_ALL, add_help_option=False)
def completion(context: typer.Context) -> None:
    """Completion for bash, zsh and fish."""
    _pass_on(context)


@app.command(context_settings=_ALL, add_help_option=False)
def explain(context: typer.Context) -> None:
    """Why nothing arrives on a subscription, and what to do about it."""
    _pass_on(context)


@app.command(context_settings=_ALL, add_help_option=False)
def contexts(context: typer.Context) -> None:
    """Saved connections: where brokers are and how to log in."""
    _pass_on(context)


@app.command(context_settings=_ALL, add_help_option=False)
def produce(context: typer.Context) -> None:
    """Send messages to a topic, with the flags of `pulsar-client produce`."""
    _pass_on(context)


@app.command(context_settings=_ALL, add_help_option=False)
def consume(context: typer.Context) -> None:
    """Receive messages of a subscription, with the flags of `pulsar-client consume`."""
    _pass_on(context)


@app.command(context_settings=_ALL, add_help_option=False)
def read(context: typer.Context) -> None:
    """Read messages of a topic, with the flags of `pulsar-client read`."""
    _pass_on(context)


@app.command(context_settings=_ALL, add_help_option=False)
def sql(context: typer.Context) -> None:
    """Run a SELECT over topics; nothing is acknowledged."""
    _pass_on(context)


@app.command(context_settings=_ALL, add_help_option=False)
def perf(context: typer.Context) -> None:
    """Load and figures: produce, consume, read and transaction, with the flags of `pulsar-perf`."""
    _pass_on(context)


@app.command(context_settings=_ALL, add_help_option=False)
def backup(context: typer.Context) -> None:
    """Back up a broker, running or not, as of one moment."""
    _pass_on(context)


@app.command(context_settings=_ALL, add_help_option=False)
def restore(context: typer.Context) -> None:
    """Make a backup a data directory again."""
    _pass_on(context)


_BYTES_FOLLOW: Final = ("-m", "--messages", "-f", "--files")
"""Flags of ``produce`` whose values are sent, or opened, byte for byte."""


@app.command(context_settings=_ALL, add_help_option=False)
def doctor(context: typer.Context) -> None:
    """What is wrong with this machine or with a broker, and what to do about it."""
    _pass_on(context)


@app.command("generate_documentation", hidden=True, context_settings={**_ALL, "help_option_names": ["--help"]})
def generate_documentation(context: typer.Context) -> None:
    """Refuse: docs/command-line.md is the page of all commands. Example: magnetar produce orders -m hello"""
    print("magnetar: generate_documentation is not here: docs/command-line.md lists all commands", file=sys.stderr)
    raise typer.Exit(1)


def main() -> None:
    """Entry point of the ``magnetar`` script."""
    written(_run)


def _named() -> set[str]:
    commands = {command.name or getattr(command.callback, "__name__", "") for command in app.registered_commands}
    return commands | {group.name for group in app.registered_groups if group.name}


def _run() -> None:
    arguments = helped(sys.argv[1:])
    if arguments[:1] == ["admin"]:
        # its words are its own: the group above would take a "--" away
        importlib.import_module(_ADMIN).app(arguments[1:])
    if arguments[:2] == ["completion", "words"]:
        # so are those of a line that is being completed
        completed = importlib.import_module(f"magnetar.{PASSED_ON['completion']}.command")
        completed.app(arguments[1:], prog_name="magnetar completion")
    arguments = in_order(arguments)
    wrong = not_text(arguments, _BYTES_FOLLOW if arguments[:1] == ["produce"] else ())
    if wrong is None and arguments and arguments[0] not in _named():
        from magnetar.app.misplaced_words import misplaced

        table = importlib.import_module("magnetar.cli.admin.table")
        wrong = misplaced(arguments, _named(), {*table.GROUPS, *table.ALIASES})
    if wrong is not None:
        complain(wrong)
        raise SystemExit(2)
    app(passed_whole(arguments, PASSED_ON), prog_name="magnetar")


if __name__ == "__main__":
    main()
