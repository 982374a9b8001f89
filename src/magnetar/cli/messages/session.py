"""One client for one command: signals, errors and exit codes.

A command that fails says what, where and the next step on standard error and exits with 255; Ctrl-C, SIGTERM and
SIGHUP let it finish what it prints and exit with 130; a second one ends it at once. Where nobody reads what it prints
any more, it exits with 141.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import typer

from magnetar.cli.messages.interrupts import INTERRUPTED, Interrupts, interrupts
from magnetar.cli.output.first_trouble import first_trouble_said
from magnetar.model.errors import MagnetarError
from magnetar.runtime.command_line import PIPE_CLOSED, complain, let_go_of_output, output_refused

if TYPE_CHECKING:
    from magnetar.aio import Client
    from magnetar.contexts.broker_connection import ConnectionFlags

FAILED: Final = 255
"""What `pulsar-client` exits with."""


def run(
    flags: ConnectionFlags,
    work: Callable[[Client], Coroutine[Any, Any, None]],
    at_end: Callable[[], None],
    *,
    listener_name: str | None = None,
    connections: int = 1,
    memory_limit: int = 0,
    failed: int = FAILED,
) -> None:
    """Do the work with a client, then ``at_end``, whatever happened. Raises typer.Exit; ``failed`` is its code.

    ``memory_limit``: bytes that may wait for receipts; 0: the client's own limit.
    """
    code = 0
    try:
        with interrupts() as signals:
            asyncio.run(_main(signals, flags, work, listener_name, connections, memory_limit))
    except (KeyboardInterrupt, asyncio.CancelledError):
        code = INTERRUPTED
    except BrokenPipeError:
        let_go_of_output()  # who read what is printed has gone
        code = PIPE_CLOSED
    except (MagnetarError, OSError) as error:
        if output_refused(error):
            raise
        complain(error)
        code = failed
    finally:
        try:
            at_end()
        except MagnetarError as error:
            complain(error)
            code = failed
    if code:
        raise typer.Exit(code)


async def _main(
    signals: Interrupts,
    flags: ConnectionFlags,
    work: Callable[[Client], Coroutine[Any, Any, None]],
    listener: str | None,
    connections: int,
    memory_limit: int,
) -> None:
    from magnetar.aio import Client
    from magnetar.client.aio.connections.topic_lookup import log
    from magnetar.contexts.broker_connection import connection

    task = asyncio.current_task()
    assert task is not None
    signals.end(task)
    found = connection(flags)
    opened = partial(Client, memory_limit_bytes=memory_limit) if memory_limit else Client
    async with opened(
        found.service_url, found.login, listener_name=listener, connections_per_broker=connections
    ) as client:
        signals.leave = partial(_leave, client)
        with first_trouble_said(log, partial(complain, lead="")):
            await work(client)


def _leave(client: Client) -> None:
    typer.echo("magnetar: the broker does not answer; left without waiting for it", err=True)
    client.shutdown()
