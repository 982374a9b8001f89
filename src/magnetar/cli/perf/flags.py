"""Flags of ``magnetar perf`` as rows, from which commands are made: there are some sixty for one command."""

from __future__ import annotations

import inspect
import math
from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from magnetar.cli.messages.flags import connection_flags, refuse
from magnetar.contexts.broker_connection import ConnectionFlags
from magnetar.contexts.flags import (
    AuthParams,
    AuthPlugin,
    ClientConfFile,
    Context,
    ListenerName,
    ServiceUrl,
    Token,
    Trust,
    WebUrl,
    help_of,
)
from magnetar.model.errors import InvalidValueError
from magnetar.runtime.command_line import complain

if TYPE_CHECKING:
    from magnetar.client.rest import Rest

TOPICS: Final = "topics"
OPENED_MAX: Final = 1_000_000
"""Producers, consumers or readers of one test."""
Body = Callable[[Namespace], None]
"""What a command does with the values of its flags."""


class Flag(NamedTuple):
    """One flag: the name of its value, how it is written, its default (which says its type), what it is for."""

    name: str
    written: str
    default: Any
    help: str = ""
    """Empty: it is known, and not shown."""
    kind: Any = None
    """Its type, where the default does not say it."""


def flagged(rows: Sequence[Flag], *, topics: bool = True) -> Callable[[Body], Callable[..., None]]:
    """Make a command of a function that gets all values by name."""

    def make(function: Body) -> Callable[..., None]:
        def command(**values: Any) -> None:
            function(Namespace(**values))

        parameters = []
        if topics:
            argument = typer.Argument(help="One topic, or as many as --num-topics says.", metavar="TOPIC")
            parameters.append(_parameter(TOPICS, Annotated[list[str], argument], inspect.Parameter.empty))
        for row in (*rows, *_CONNECTION):
            option = typer.Option(*row.written.split(), help=row.help or None, hidden=not row.help)
            kind = row.kind or (str | None if row.default is None else type(row.default))
            parameters.append(_parameter(row.name, Annotated[kind, option], row.default))
        parameters += [_parameter(name, shared, None) for name, shared in _SHARED.items()]
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # functions may have one
        command.__annotations__ = {one.name: one.annotation for one in parameters}
        command.__name__, command.__doc__ = function.__name__, function.__doc__
        return command

    return make


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


_SHARED: Final = {
    "url": ServiceUrl,
    "auth_plugin": AuthPlugin,
    "auth_params": AuthParams,
    "trust": Trust,
    "context": Context,
    "client_conf": ClientConfFile,
    "token": Token,
    "listener_name": ListenerName,
}
"""The flags that other commands have as well, by the names of their values."""
_CONNECTION: Final = (
    Flag("connections", "--max-connections -c", 1, "Connections to each broker."),
    Flag("duration", "--test-duration -time", 0.0, "Seconds; 0: until it is done."),
    Flag("allow_insecure", "--tls-allow-insecure", False, "Trust any certificate."),
    Flag("host_names", "--tls-enable-hostname-verification", False),
    Flag("proxy_url", "--proxy-url", None),
    Flag("proxy_protocol", "--proxy-protocol", None),
    Flag("memory_limit", "--memory-limit -ml", "0", "Of producers: bytes that may wait, 32M; 0: 64M."),
    Flag("ssl_factory", "--ssl-factory-plugin", None),
    Flag("ssl_factory_params", "--ssl-factory-plugin-params", None),
    Flag("num_io_threads", "--num-io-threads -ioThreads", 1),
    Flag("num_listener_threads", "--num-listener-threads -lt", 1),
    Flag("max_lookup_request", "--max-lookup-request -mlr", 50_000),
    Flag("stats_interval_seconds", "--stats-interval-seconds -i", 0),
    Flag("busy_wait", "--busy-wait -bw", False),
)
_JAVA: Final = (*(row for row in _CONNECTION if not row.help and row.name in (
    "num_io_threads", "num_listener_threads", "max_lookup_request", "stats_interval_seconds", "busy_wait")),
)  # fmt: skip


def connection_of(given: Namespace) -> ConnectionFlags:
    """Return what the flags say about the connection; says which flags have no meaning.

    Raises InvalidValueError; also about numbers that are none, of whatever flag.
    """
    for name, value in vars(given).items():
        if isinstance(value, float) and not math.isfinite(value):
            raise InvalidValueError(f"{_written(name)}: {value} is no number")
    refuse(
        proxy_url=given.proxy_url, proxy_protocol=given.proxy_protocol,
        ssl_factory_plugin=given.ssl_factory or given.ssl_factory_params,
    )  # fmt: skip
    without_meaning(given, _JAVA)
    found = connection_flags(
        given.url, given.auth_plugin, given.auth_params, given.trust, given.context, given.client_conf, given.token
    )
    from dataclasses import replace

    return replace(found, allow_insecure=given.allow_insecure or None)


def rest_of(connection: ConnectionFlags, admin_url: str | None) -> Rest:
    """Return the REST interface of that broker, which ``--partitions`` uses. Raises InvalidValueError."""
    from dataclasses import replace

    from magnetar.contexts.broker_connection import connection_of_both

    return connection_of_both(replace(connection, web_url=admin_url)).rest(30)


def _written(name: str, rows: Sequence[Flag] = ()) -> str:
    of_name = (row.written.split()[0] for row in (*rows, *_CONNECTION) if row.name == name)
    return next(of_name, f"--{name.replace('_', '-')}")


def at_least(given: Namespace, rows: Sequence[Flag], lowest: int, *names: str) -> None:
    """Raise InvalidValueError about the first of these numbers that is below the lowest."""
    for name in names:
        if getattr(given, name) < lowest:
            raise InvalidValueError(
                f"{_written(name, rows)}: {lowest} at least is expected, not {getattr(given, name)}"
            )


def check_transactions(given: Namespace) -> None:
    """Check what the flags say about transactions, if they are used. Raises InvalidValueError."""
    if given.txn:
        at_least(given, TRANSACTIONS, 1, "txn_size", "txn_timeout")


def check_opened(count: int, what: str) -> None:
    """Raise InvalidValueError about more producers or consumers than one process opens."""
    if count > OPENED_MAX:
        raise InvalidValueError(f"these would be {count} {what}, and {OPENED_MAX} are the most")


def without_meaning(given: Namespace, rows: Sequence[Flag]) -> None:
    """Say which flags were given that tune the Java client and change nothing here."""
    names = [row.written.split()[0] for row in rows if getattr(given, row.name) != row.default]
    if names:
        complain(f"{', '.join(names)}: of the Java client; no meaning here")


TRANSACTIONS: Final = (
    Flag("txn", "--txn-enable -txn", False, "Use transactions."),
    Flag("txn_timeout", "--txn-timeout -tto", 10, "Seconds a transaction may take."),
    Flag("txn_size", "--numMessage-perTransaction -nmt", 50, "Messages of a transaction."),
    Flag("abort", "-abort", False, "Abort them."),
)
TOPIC_COUNT: Final = Flag("topic_count", "--num-topics --num-topic -t", 1, "Topics; of one name NAME-0, NAME-1, …")
HISTOGRAM_FILE: Final = Flag("histogram_file", "--histogram-file", None, "Write a log of HdrHistogram there.")
PARTITIONS: Final = (
    Flag("partitions", "--partitions -np", None, "Create the topics with so many partitions.", int | None),
    Flag("admin_url", "--admin-url --web-url -au", None, f"{help_of(WebUrl)[:-1]}; for --partitions."),
)
