"""``magnetar standalone``: one node until a signal ends it."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from magnetar.app.garbage_collection import EVERY_SECONDS, GarbageCollection
from magnetar.app.node import Node
from magnetar.compiled_build import check_build
from magnetar.config.settings import Settings
from magnetar.protocol import varints
from magnetar.runtime.command_line import ending_signals, let_go_of_output
from magnetar.runtime.connections.descriptors import raise_limit
from magnetar.runtime.memory.trim import share_one_heap
from magnetar.runtime.tasks import TaskGroup

log = logging.getLogger(__name__)


def run(data: Path, settings: Settings) -> None:
    """Start, print where it listens, serve until SIGINT, SIGTERM or SIGHUP, stop cleanly.

    Raises PersistenceError if the data directory cannot be used, OSError if a port cannot, NotAllowedError if the
    process may not open enough files, or if MAGNETAR_BUILD asks for another build.
    """
    check_build()
    raise_limit()
    share_one_heap()
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_serve(data, settings))


class StandardOutput:
    """Where a broker prints what its user has to know."""

    def __init__(self) -> None:
        self._refused = ""
        """Why nothing can be printed any more."""

    def announce(self, line: str) -> None:
        """Print a line; where none can be printed (the output's disk is full, its reader is gone), the log has it."""
        if not self._refused:
            try:
                sys.stdout.write(f"{line}\n")
                sys.stdout.flush()
                return
            except OSError as error:
                self._refused = error.strerror or str(error)
                let_go_of_output()  # what is printed from now on goes nowhere
        log.warning("the standard output cannot be written (%s): %s", self._refused, line)


announce: Final = StandardOutput().announce
"""Of this process."""


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop


async def _serve(data: Path, settings: Settings) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGINT, *ending_signals()):
        loop.add_signal_handler(number, stop.set)
    varints.prepare()
    garbage, tasks = GarbageCollection(), TaskGroup("garbage collection")
    node = Node(data, settings)
    node.broker.service.surroundings.request_stop = stop.set
    await node.start()
    garbage.recovered()
    service = node.broker.service
    mode = (
        "receipts wait for the disk"
        if settings.journalSyncData
        else ("journalSyncData=false: receipts do NOT wait for the disk, a power loss can lose acknowledged messages")
    )
    urls = (service.service_url, service.service_url_tls, service.web_service_url, service.web_service_url_tls)
    announce(f"magnetar is ready: {' '.join(filter(None, urls))} data in {data} ({mode})")
    await node.complete()
    garbage.complete(node.memory.blocks_in_use)
    tasks.repeat(EVERY_SECONDS, garbage.look, "look")
    await stop.wait()
    log.info("stopping")
    await tasks.close()
    await node.stop()
