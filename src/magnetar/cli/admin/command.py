"""``magnetar admin``: the commands of Apache Pulsar's ``pulsar-admin`` (decision 039).

Only the table of the group that is asked for is read, and a connection's code is imported for a request only, so that
help answers at once.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from magnetar import __version__
from magnetar.cli.admin import help_page
from magnetar.cli.admin.arguments import HelpWanted, Parser, UsageError, VersionWanted, with_files
from magnetar.cli.admin.error_report import ErrorReport
from magnetar.cli.admin.table import ALIASES, GROUPS, Command, CommandFlag, commands_of
from magnetar.cli.output.exit_code import ended
from magnetar.contexts.flags import AuthParams, AuthPlugin, ClientConfFile, Context, Token, Trust, WebUrl, help_of
from magnetar.model.errors import MagnetarError
from magnetar.runtime.command_line import not_text, output_refused

if TYPE_CHECKING:
    from magnetar.cli.admin.call import Call
    from magnetar.cli.admin.values import Value
    from magnetar.contexts.broker_connection import BrokerConnection

FAILED: Final = 1
"""Also for wrong arguments, which end other commands here with 2: so it is with `pulsar-admin`."""
_TIMEOUT: Final = 300


def _flag(names: str, kind: str, said: str) -> CommandFlag:
    return CommandFlag(tuple(names.split(",")), kind, False, "", False, said)


ROOT_FLAGS: Final = (
    _flag("--admin-url,--web-url", "text", help_of(WebUrl)),
    _flag("--context", "text", help_of(Context)),
    _flag("--client-conf", "text", help_of(ClientConfFile)),
    _flag("--token", "text", help_of(Token)),
    _flag("--auth-plugin", "text", help_of(AuthPlugin)),
    _flag("--auth-params", "text", help_of(AuthParams)),
    _flag("--request-timeout", "int", "Seconds that the broker may take; 300."),
    _flag("--tls-allow-insecure", "switch", "Take any certificate: for experiments only."),
    _flag("--tls-trust-cert-path", "text", help_of(Trust)),
    _flag("--tls-enable-hostname-verification", "switch", "Check the host's name, which is always done."),
    _flag("--tls-provider", "text", "Chooses a library of Java; there is no choice here."),
    _flag("--output", "one of plain|table|json", "How to print; a table on a terminal, plain elsewhere."),
    _flag("--json", "switch", "Print JSON, errors too."),
)
"""Flags before the group; after a command they are taken too, unless it has such a flag of its own."""


def app(arguments: Sequence[str], prog_name: str = "magnetar admin") -> None:
    """Run one command and end the process with its exit code."""
    raise SystemExit(ended(lambda: run(arguments)))


class _Failure(Exception):
    """The command ends with an error."""

    def __init__(self, report: ErrorReport) -> None:
        self.report = report
        super().__init__(report.error)


def run(arguments: Sequence[str]) -> int:
    """Run one command; return its exit code: 0, or 1 after an error on standard error."""
    try:
        wrong = not_text(arguments)
        if wrong is not None:
            raise UsageError(wrong)
        return _run(with_files(arguments))
    except VersionWanted:
        _say(f"magnetar {__version__}")
        return 0
    except _Failure as failure:
        return _failed(failure, as_json=_asks_for_json(arguments))
    except UsageError as error:
        misuse = _misuse(f"magnetar admin: {error}", "magnetar admin --help lists the groups of commands")
        return _failed(misuse, as_json=_asks_for_json(arguments))


def _asks_for_json(arguments: Sequence[str]) -> bool:
    """Return whether errors are wanted as JSON; of arguments that may be wrong, so that they are not parsed."""
    pairs = zip(arguments, [*arguments[1:], ""], strict=True)
    return any(one in ("--json", "--output=json") or (one, other) == ("--output", "json") for one, other in pairs)


def _misuse(error: str, hint: str) -> _Failure:
    return _Failure(ErrorReport(error, following=hint))


def _run(words: list[str]) -> int:
    root = Parser(ROOT_FLAGS, stop=True)
    try:
        given = root.parse(words)
    except HelpWanted:
        _say(help_page.root_page(ROOT_FLAGS))
        return 0
    if not root.rest:
        _say(help_page.root_page(ROOT_FLAGS))
        return FAILED
    group = ALIASES.get(root.rest[0], root.rest[0])
    if group not in GROUPS:
        raise UsageError(f"there is no group {root.rest[0][:80]!r}{help_page.meant(root.rest[0], GROUPS)}")
    return _group(group, root.rest[1:], given)


def _group(group: str, words: list[str], given: Mapping[str, Value]) -> int:
    if not words or words[0] in ("-h", "--help"):
        _say(help_page.group_page(group))
        return 0 if words else FAILED
    if words[0] in ("-v", "--version"):
        raise VersionWanted
    commands = commands_of(group)
    command = commands.get(words[0])
    if command is None:
        hint = help_page.meant(words[0], commands)
        raise _misuse(
            f"magnetar admin {group}: there is no command {words[0][:80]!r}{hint}",
            f"magnetar admin {group} --help lists them",
        )
    called = f"magnetar admin {group} {command.name}"
    if command.refusal is not None:
        if {"-h", "--help"} & set(words):
            _say(help_page.command_page(command))
            return 0
        raise _Failure(ErrorReport(f"{called}: {command.refusal}"))
    late = _taken_after(command)
    try:
        values = Parser([*command.flags, *late], command.arguments).parse(words[1:])
        _check_pairs(command, values)
        said = {flag.key: values.pop(flag.key) for flag in late if flag.key not in ("json", "output")}
        given = {**given, **{key: value for key, value in said.items() if value}}
        return _carry_out(command, {**given, **_wanted(values, given)}, called)
    except HelpWanted:
        _say(help_page.command_page(command))
        return 0
    except UsageError as error:
        raise _misuse(f"{called}: {error}", f"{called} --help") from None


def _taken_after(command: Command) -> list[CommandFlag]:
    """The flags of ROOT_FLAGS that have no other meaning for this command."""
    names = {name for flag in command.flags for name in flag.names}
    keys = {flag.key for flag in command.flags} | {argument.name for argument in command.arguments}
    return [
        flag
        for flag in ROOT_FLAGS
        if flag.key in ("json", "output") or (flag.key not in keys and not names.intersection(flag.names))
    ]


def _wanted(values: Mapping[str, Value], given: Mapping[str, Value]) -> dict[str, Value]:
    """The values of a command under their names; of --output and --json, those that were said anywhere."""
    form = "json" if values["json"] or given["json"] else values["output"] or given["output"]
    own = {name: value for name, value in values.items() if name not in ("json", "output")}
    return {**own, " form": form, " root": None, **{f" {name}": value for name, value in given.items()}}


def _check_pairs(command: Command, values: Mapping[str, Value]) -> None:
    for mark in command.marks:
        if mark.startswith("either:"):
            one, _, other = mark.removeprefix("either:").partition("|")
            if bool(values[one]) == bool(values[other]):
                raise UsageError(f"give either --{one} or --{other}")


def _carry_out(command: Command, values: Mapping[str, Any], called: str) -> int:
    from magnetar.cli.admin.call import Call
    from magnetar.cli.admin.failures import explained
    from magnetar.cli.output.printer import Printer

    call = Call(
        command,
        values,
        Printer(values[" form"]),
        lambda: _connection(values),
        float(values[" request-timeout"] or _TIMEOUT),
    )
    try:
        _send(call)
    except UsageError:
        raise
    except BrokenPipeError:
        raise
    except (MagnetarError, OSError, ValueError) as error:
        if output_refused(error):
            raise
        raise _Failure(explained(error, called, call)) from None
    return 0


def _send(call: Call) -> None:
    from magnetar.cli.admin.call import json_of
    from magnetar.cli.admin.functions import function_named
    from magnetar.cli.admin.request import request_of

    if call.command.function is not None:
        function_named(call.command.function)(call)
        return
    kind = call.command.printed + ("-indent" if call.command.printed == "gson" and call.switch("indent") else "")
    call.show(kind, json_of(call.exchange(request_of(call.command, call.values))))


def _connection(values: Mapping[str, Any]) -> BrokerConnection:
    from magnetar.contexts.broker_connection import ConnectionFlags, connection

    return connection(
        ConnectionFlags(
            context=values[" context"],
            client_conf=values[" client-conf"],
            web_url=values[" admin-url"],
            token=values[" token"],
            auth_plugin=values[" auth-plugin"],
            auth_params=values[" auth-params"],
            trust=values[" tls-trust-cert-path"],
            allow_insecure=True if values[" tls-allow-insecure"] else None,
        )
    )


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _failed(failure: _Failure, *, as_json: bool) -> int:
    from magnetar.runtime.harmless_text import one_line

    sys.stdout.flush()
    said = failure.report
    lines = [json.dumps(said.members())] if as_json else [one_line(line) for line in said.lines()]
    sys.stderr.write("".join(f"{line}\n" for line in lines))
    return FAILED
