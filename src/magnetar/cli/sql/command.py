"""``magnetar sql``: the flags; engine and reader are imported once they are understood."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final, NoReturn

import typer

from magnetar.cli.messages import flags
from magnetar.cli.sql.engine_thread import engine_at_work
from magnetar.contexts.flags import AuthParams, AuthPlugin, ClientConfFile, Context, ServiceUrl, Token, Trust
from magnetar.model.errors import InvalidValueError, MagnetarError
from magnetar.runtime.command_line import PIPE_CLOSED, commands, complain, file_name, let_go_of_output, output_refused

app = commands("Query topics with SQL.")
_FLAGS: Final = (
    ("failOnDataLoss=false", "--skip-lost"),
    ("startingOffsets says", "--from says"),
    ("endingOffsets says", "--until says"),
    ("the option 'decryption.privateKey'", "--encryption-key-value file:///private.pem"),
    ("let 'decryption.onFailure' be skip or consume", "let --crypto-failure-action be DISCARD or CONSUME"),
)
"""What errors of Spark's source say, and what it is called here."""
_WRONG: Final = 2
"""Exit code about flags and statements that cannot be."""
_PACKAGES: Final = frozenset({"polars", "pyarrow", "numba", "ptars"})


@app.command()
def sql(
    statement: Annotated[str, typer.Argument(help="A SELECT; tables are topics.", metavar="STATEMENT")],
    start: Annotated[
        str, typer.Option("--from", help="earliest, latest, LEDGER:ENTRY or a time: 2026-01-31T10:00:00Z.")
    ] = "earliest",
    until: Annotated[str, typer.Option("--until", help="Where to end, exclusive; the same words.")] = "latest",
    value: Annotated[
        str, typer.Option("--value", help="Values: auto (the topic's schema, else bytes), binary or string.")
    ] = "auto",
    max_rows: Annotated[int, typer.Option("--max-rows", help="Rows to read at most; 0: no bound.")] = 100_000_000,
    max_bytes: Annotated[
        int, typer.Option("--max-bytes", help="Bytes of used columns to read at most; 0: no bound.")
    ] = 1 << 30,
    max_memory: Annotated[
        int, typer.Option("--max-memory", help="Bytes of memory that the query may take; 0: no bound.")
    ] = 4 << 30,
    timeout: Annotated[float, typer.Option("--timeout", help="Seconds; 0: no bound.")] = 0.0,
    skip_lost: Annotated[bool, typer.Option("--skip-lost", help="Go on without what is trimmed meanwhile.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON for each row.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    parquet: Annotated[
        Path | None, typer.Option("--parquet", parser=file_name, help="Write this file.", metavar="FILE")
    ] = None,
    key_value: flags.PrivateKey = None,
    crypto_failure: flags.CryptoFailure = "FAIL",
    url: ServiceUrl = None,
    auth_plugin: AuthPlugin = None,
    auth_params: AuthParams = None,
    trust: Trust = None,
    context: Context = None,
    client_conf: ClientConfFile = None,
    token: Token = None,
) -> None:
    """Run a SELECT over topics, up to their end as of now. Example: magnetar sql "SELECT count(*) FROM orders\""""
    from magnetar.cli.messages.interrupts import INTERRUPTED, interrupts
    from magnetar.cli.messages.produce.sender import usage
    from magnetar.cli.sql.read_bounds import ReadBounds
    from magnetar.cli.sql.statement import check_statement
    from magnetar.contexts.broker_connection import connection

    with usage():
        check_statement(statement)
        if as_json + as_csv + (parquet is not None) > 1:
            raise InvalidValueError("give one of --json, --csv and --parquet")
        if value not in ("auto", "binary", "string"):
            raise InvalidValueError(f"--value is {value[:100]!r}; it can be auto, binary or string")
        if not 0 <= timeout < float("inf"):
            raise InvalidValueError(f"--timeout is {timeout}; seconds from 0 on are expected, 0 is no bound")
        bounds = ReadBounds(max_rows=max_rows, max_bytes=max_bytes, timeout=timeout, max_memory=max_memory)
        given = flags.connection_flags(url, auth_plugin, auth_params, trust, context, client_conf, token)
        found = connection(given)
    with _failures():
        from magnetar.cli.sql.private_key import decryption
        from magnetar.cli.sql.result_forms import check_file, show
        from magnetar.cli.sql.topic_query import Query
        from magnetar.cli.sql.topic_table import place, reading_options

        with usage():
            place(start), place(until)
            keys = decryption(key_value, crypto_failure)
            if parquet is not None:
                check_file(parquet)
        options = reading_options(found.service_url, found.login, value, keys, strict=not skip_lost)
        query = Query(text=statement, options=options, bounds=bounds, start=start, end=until)
        with interrupts() as signals:
            rows = query.run(signals)
        if rows is None:
            leave_with(INTERRUPTED)
        show(rows, sys.stdout, as_json=as_json, as_csv=as_csv, parquet=parquet)
        sys.stdout.flush()


@contextlib.contextmanager
def _failures() -> Iterator[None]:
    """Say what failed, and the next step, on standard error. Raises typer.Exit."""
    from magnetar.cli.messages.session import FAILED
    from magnetar.cli.sql.statement import StatementError

    try:
        yield
        return
    except BrokenPipeError:
        let_go_of_output()  # who read what is printed has gone
        leave_with(PIPE_CLOSED)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _PACKAGES:
            raise
        complain(f"sql needs {error.name}, which is not installed: from a checkout, pip install '.[sql]'")
    except (MagnetarError, OSError) as error:
        if output_refused(error) and not engine_at_work():
            raise
        complain(_with_flags(str(error)))
        leave_with(_WRONG if isinstance(error, StatementError) else FAILED)
    leave_with(FAILED)


def _with_flags(text: str) -> str:
    """Return an error of Spark's source, which names its options, with the flags that stand for them."""
    for option, flag in _FLAGS:
        text = text.replace(option, flag)
    return text


def leave_with(code: int) -> NoReturn:
    """End the command: at once where the engine is at work, which nothing else ends. Raises typer.Exit."""
    if not engine_at_work():
        raise typer.Exit(code)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
