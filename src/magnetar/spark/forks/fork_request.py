"""A process that Spark has just started asks for a fork in its place: what it is, and its three standard streams.

Messages over a unix socket, whose both ends make sure that the other one belongs to the same user. The process that
asked stays, as the one that Spark knows: it passes signals on, and ends as the fork ends. A fork begins when it is
taken, so it never works beside a process that has lost patience and works itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import struct
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

ADDRESS: Final = "MAGNETAR_FORK_SERVER"
"""The variable that names the socket."""
DAEMON: Final = "pyspark.daemon"
"""The module that may be asked for."""

_SIZE: Final = struct.Struct("!I")
_MESSAGE_MAX: Final = 16 << 20
_CREDENTIALS: Final = struct.Struct("3i")
_PATIENCE: Final = 120.0
"""Seconds after which the process does without; kernels that have to be compiled take ten to twenty."""
_READ_AT_IMPORT: Final = (
    "ARROW_", "GLIBC_", "LANG", "LC_", "LD_", "MALLOC_", "MIMALLOC_", "MKL_", "NPY_", "NUMBA_", "NUMEXPR_", "OMP_",
    "OPENBLAS_", "OPENSSL_", "POLARS_", "PYTHON", "SSL_",
)  # fmt: skip
"""What interpreters and libraries read when they start; a fork cannot have it otherwise than its server had it."""
_OF_NO_EFFECT: Final = ("PYTHONPATH", "PYTHONUNBUFFERED", "PYTHON_", "PYTHONDONTWRITEBYTECODE")
"""The path travels by itself; what Spark says to its daemon is read by the fork."""
_LEFT_OPEN: Final = ("OMP_NUM_THREADS", "PYTHONHASHSEED")
"""A process that does not say how many threads, and in which order sets are, is content with any."""


@dataclass
class ForkRequest:
    """What a fork has to become: the process that asks."""

    arguments: list[str]
    """A module and its arguments."""
    path: list[str]
    environment: dict[str, str]
    directory: str
    umask: int

    @classmethod
    def of_this_process(cls, arguments: Sequence[str]) -> ForkRequest:
        """Describe the process that calls."""
        umask = os.umask(0o077)
        os.umask(umask)
        return cls(list(arguments), list(sys.path), dict(os.environ), os.getcwd(), umask)

    def put_on(self) -> None:
        """Make the process that calls, a fork, what was asked for."""
        os.environ.clear()
        os.environ.update(self.environment)
        os.chdir(self.directory)
        os.umask(self.umask)
        sys.path[:] = self.path
        sys.argv[:] = self.arguments

    def misfit(self, path: Sequence[str], environment: Mapping[str, str]) -> str:
        """Return why a server with this path and environment cannot be forked for it; empty if it can."""
        if self.arguments[:1] != [DAEMON]:
            return f"only {DAEMON} is forked"
        if self.path[1:] != list(path)[1:]:
            return "the path is another one"
        for name in sorted(self.environment.keys() | environment.keys()):
            if not name.startswith(_READ_AT_IMPORT) or name.startswith(_OF_NO_EFFECT):
                continue
            given = self.environment.get(name)
            if given != environment.get(name) and (given is not None or name not in _LEFT_OPEN):
                return f"{name} is another one"
        return ""


def send(connection: socket.socket, message: Mapping[str, Any], descriptors: Sequence[int] = ()) -> None:
    """Send one message, with descriptors beside it."""
    data = json.dumps(message).encode()
    socket.send_fds(connection, [_SIZE.pack(len(data))], list(descriptors))
    connection.sendall(data)


def receive(connection: socket.socket, descriptors: int = 0) -> tuple[dict[str, Any], list[int]]:
    """Return one message and its descriptors. Raises OSError, ValueError: what came is none."""
    head, found, _, _ = socket.recv_fds(connection, _SIZE.size, max(descriptors, 1))
    try:
        size = _SIZE.unpack(head)[0] if len(head) == _SIZE.size else _MESSAGE_MAX + 1
        if size > _MESSAGE_MAX or len(found) != descriptors:
            raise ValueError("no message")
        data = bytearray()
        while len(data) < size:
            if not (part := connection.recv(min(size - len(data), 1 << 16))):
                raise ValueError("half of a message")
            data += part
        return dict(json.loads(data)), found
    except BaseException:
        for one in found:
            os.close(one)
        raise


def is_own(connection: socket.socket) -> bool:
    """Return whether the other end belongs to the same user."""
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return bool(_CREDENTIALS.unpack(found)[1] == os.getuid())


def run_as_fork(address: str, arguments: Sequence[str]) -> int | None:
    """Have this process's work done by a fork, and return its exit code; None if there is no server that does it."""
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.settimeout(_PATIENCE)
            connection.connect(address)
            if not is_own(connection):
                return None
            send(connection, asdict(ForkRequest.of_this_process(arguments)), (0, 1, 2))
            process = int(receive(connection)[0]["process"])
            ended = os.pidfd_open(process)
            _pass_signals_on(process)
            send(connection, {"taken": True})
        except (OSError, ValueError, KeyError, TypeError):
            return None
        # The fork has them, and Spark waits for the end of these streams.
        with open(os.devnull, "r+b") as nothing:
            for stream in (0, 1):
                os.dup2(nothing.fileno(), stream)
        connection.settimeout(None)
        try:
            return int(receive(connection)[0]["code"])
        except (OSError, ValueError, KeyError):
            # The server ended before its fork does, and takes the code with it. Where no process clears away what its
            # parent has left, as in many containers, an ended fork keeps its number for ever.
            select.select([ended], [], [])
            return 1


def is_taken(connection: socket.socket, process: int) -> bool:
    """Offer this process, a fork, to who asked for it; False: it is not wanted any more."""
    try:
        send(connection, {"process": process})
        return receive(connection)[0] == {"taken": True}
    except (OSError, ValueError):
        return False


def _pass_signals_on(process: int) -> None:
    def pass_on(number: int, _: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, pass_on)
