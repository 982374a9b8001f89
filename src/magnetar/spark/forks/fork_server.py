"""The process that is forked: imports and loads what Spark's Python processes need, and becomes each that asks.

    python -m magnetar.spark.forks.fork_server LISTENER

is started by a session (`server_start`), beside Java. It answers as soon as it can: who plans a query need not wait for
kernels that may have to be compiled. It ends with the process that started it, whose end of the pipe at its standard
input closes then; forks go on until Spark ends them.
"""

from __future__ import annotations

import contextlib
import gc
import os
import runpy
import select
import signal
import socket
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from magnetar.spark.forks.fork_request import ForkRequest, is_own, is_taken, receive, send
from magnetar.spark.forks.preload import WORKER, freeze, planning, reseed, thread_count, working

_PATIENCE: Final = 5.0
"""Seconds for a message to arrive; who asks sends it at once."""
_INPUT: Final = 0


class ForkServer:
    """One listening socket, and the forks that were made for who came there."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._path = list(sys.path)
        self._environment = dict(os.environ)
        self._waiting: list[tuple[socket.socket, ForkRequest, list[int]]] = []
        """Those whose fork has to have kernels, while these are loaded."""
        self._forks: dict[int, tuple[int, socket.socket]] = {}
        """By the descriptor that becomes readable at its end: the process, and who asked for it."""
        self.made: ForkRequest | None = None
        """What this process has become, in a fork."""

    def serve(self) -> None:
        """Load, and fork, until the end of this process's parent; in a fork it returns at once with `made`."""
        for _ in planning():
            pass
        freeze()
        for _ in working():
            if not self._look(0, workers=False) or self.made is not None:
                return
        freeze()
        if thread_count() > 1:
            # A fork would lack the others, and what they had locked would stay so.
            return
        while self.made is None and self._look(None, workers=True):
            pass

    def _look(self, wait: float | None, *, workers: bool) -> bool:
        """Answer who has come; False at the end of the parent. ``workers``: everything is loaded."""
        if workers:
            while self._waiting and self.made is None:
                self._fork(*self._waiting.pop())
            if self.made is not None:
                return True
        watched = [_INPUT, self._listener.fileno(), *self._forks]
        ready = select.select(watched, [], [], wait)[0]
        for one in ready:
            if one in self._forks:
                self._report(one)
        if _INPUT in ready:
            return False
        if self._listener.fileno() in ready:
            self._accept(workers=workers)
        return True

    def _accept(self, *, workers: bool) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:
            return
        streams: list[int] = []
        try:
            connection.settimeout(_PATIENCE)
            if not is_own(connection):
                raise ValueError("another user's")
            message, streams = receive(connection, 3)
            request = _request_of(message)
            if why := request.misfit(self._path, self._environment):
                send(connection, {"refused": why})
                raise ValueError(why)
        except (OSError, ValueError, TypeError):
            # Java waits for the end of what it reads, which these would keep open.
            _close(connection, streams)
            return
        if not workers and request.arguments[1:2] == [WORKER]:
            self._waiting.insert(0, (connection, request, streams))
        else:
            self._fork(connection, request, streams)

    def _fork(self, connection: socket.socket, request: ForkRequest, streams: list[int]) -> None:
        try:
            process = os.fork()
        except OSError:
            # There is no memory, or no process, for it; who asked works itself then, and may have more luck.
            _close(connection, streams)
            return
        if not process:
            try:
                self._become(connection, request, streams)
            except BaseException:
                # It is the server, up to here, whose place and socket are not its own to clear away.
                traceback.print_exc()
                os._exit(1)
            return
        for one in streams:
            os.close(one)
        self._forks[os.pidfd_open(process)] = process, connection

    def _become(self, connection: socket.socket, request: ForkRequest, streams: list[int]) -> None:
        """Take over the streams, and nothing of the server's."""
        if not is_taken(connection, os.getpid()):
            os._exit(1)
        connection.close()
        self._listener.close()
        for ended, (_, other) in self._forks.items():
            os.close(ended)
            other.close()
        for other, _, others in self._waiting:
            other.close()
            for one in others:
                os.close(one)
        for number, one in enumerate(streams):
            os.dup2(one, number)
            os.close(one)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL if number != signal.SIGINT else signal.default_int_handler)
        gc.enable()
        request.put_on()
        self.made = request

    def _report(self, ended: int) -> None:
        """Say how a fork ended to who asked for it."""
        process, connection = self._forks.pop(ended)
        os.close(ended)
        code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        with contextlib.suppress(OSError):
            # As shells say it: a signal is 128 and its number.
            send(connection, {"code": code if code >= 0 else 128 - code})
        connection.close()


def _close(connection: socket.socket, streams: Sequence[int]) -> None:
    """Let go of who asked, and of the streams that came with the request."""
    connection.close()
    for one in streams:
        os.close(one)


def _request_of(message: Mapping[str, Any]) -> ForkRequest:
    request = ForkRequest(**message)
    texts = [*request.arguments, *request.path, *request.environment, *request.environment.values(), request.directory]
    if not all(isinstance(one, str) for one in texts) or not isinstance(request.umask, int):
        raise ValueError("no request")
    return request


def main() -> None:
    """Serve the socket whose descriptor is the argument; a fork runs what it was made for."""
    # What a terminal sends is for the session's process, whose end is the server's.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    gc.disable()
    reseed()
    listener = socket.socket(fileno=int(sys.argv[1]))
    address = Path(listener.getsockname())
    server = ForkServer(listener)
    try:
        server.serve()
    finally:
        if server.made is None:
            with contextlib.suppress(OSError):
                address.unlink(missing_ok=True)
                address.parent.rmdir()
    if server.made is not None:
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
