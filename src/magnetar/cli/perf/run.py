"""One test: its tasks, its time, a report every ten seconds, and the end.

It ends when its tasks have, after --test-duration, or by Ctrl-C; the final lines are printed in each case. A broker
that is away at the end of --test-duration, or does not answer when everything is closed then, is an error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from magnetar.cli.messages.session import run as run_session
from magnetar.cli.perf.report import INTERVAL
from magnetar.client.errors import ClientTimeoutError, ConnectionLostError

if TYPE_CHECKING:
    from magnetar.aio import Client
    from magnetar.contexts.broker_connection import ConnectionFlags


PATIENCE: Final = 5.0
"""Seconds that the broker has for its answers when everything is closed."""


class Handle(Protocol):
    """A producer, a consumer or a reader."""

    def is_connected(self) -> bool: ...


class Load(Protocol):
    """What a kind of test does and says."""

    @property
    def handles(self) -> Sequence[Handle]:
        """Everything that `prepare` has opened."""
        ...

    async def prepare(self, clients: Sequence[Client]) -> Sequence[Coroutine[Any, Any, None]]:
        """Open what is needed; returns what is done then, each in a task of its own."""
        ...

    def report(self, seconds: float) -> None:
        """Print the line of an interval that lasted so long."""
        ...

    def conclude(self, seconds: float) -> None:
        """Print the final lines of a test that lasted so long."""
        ...


def run_load(
    flags: ConnectionFlags,
    load: Load,
    *,
    seconds: float,
    clients: int = 1,
    connections: int = 1,
    listener_name: str | None = None,
    memory_limit: int = 0,
) -> None:
    """Run a test; ``seconds`` 0: until it ends by itself; ``memory_limit`` as for one client. Raises typer.Exit."""
    clock = _Clock()

    async def work(client: Client) -> None:
        others = [client.twin() for _ in range(clients - 1)]
        try:
            await _test(load, [client, *others], seconds, clock)
        finally:
            for other in others:
                other.shutdown()
            answered = await _closed(client)
        if not answered:
            raise ClientTimeoutError(f"the broker does not answer; left after {PATIENCE:g} s without waiting for it")

    run_session(
        flags, work, lambda: clock.conclude(load), listener_name=listener_name, connections=connections,
        memory_limit=memory_limit, failed=1,
    )  # fmt: skip


class _Clock:
    """When the test began and ended; final lines only if it began."""

    def __init__(self) -> None:
        self.begun: float | None = None
        self.ended: float | None = None

    def conclude(self, load: Load) -> None:
        if self.begun is not None and self.ended is not None:
            load.conclude(max(self.ended - self.begun, 1e-9))


async def _test(load: Load, clients: Sequence[Client], seconds: float, clock: _Clock) -> None:
    loop = asyncio.get_running_loop()
    work = await load.prepare(clients)
    clock.begun = loop.time()
    tasks = [loop.create_task(one) for one in work]
    together: asyncio.Future[Any] = asyncio.gather(*tasks)
    reporter: asyncio.Future[Any] = loop.create_task(_report(load, loop))
    try:
        done, _ = await asyncio.wait([together, reporter], timeout=seconds or None, return_when=asyncio.FIRST_COMPLETED)
        clock.ended = loop.time()
        for one in done:
            one.result()
        away = sum(not one.is_connected() for one in load.handles)
        if away and not done:
            raise ConnectionLostError(
                f"{away} of {len(load.handles)} producers, consumers or readers had no connection when the test ended; "
                "is the broker running?"
            )
    finally:
        clock.ended = clock.ended or loop.time()
        for task in [*tasks, reporter]:
            task.cancel()
        await asyncio.gather(*tasks, together, reporter, return_exceptions=True)


async def _closed(client: Client) -> bool:
    """Close a client; whether the broker has answered in time."""
    closing = asyncio.get_running_loop().create_task(client.close())
    try:
        await asyncio.wait([closing], timeout=PATIENCE)
        return closing.done()
    finally:
        if not closing.done():
            client.shutdown()
        await closing


async def _report(load: Load, loop: asyncio.AbstractEventLoop) -> None:
    last = loop.time()
    while True:
        await asyncio.sleep(INTERVAL)
        now = loop.time()
        load.report(now - last)
        last = now
