"""How a session starts its fork server, and ends it."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Final

from magnetar.spark.forks.fork_request import ADDRESS
from magnetar.spark.forks.preload import ONE_THREAD
from magnetar.spark.process import await_end

_END: Final = 10.0
_BACKLOG: Final = 64
_HASH_SEED: Final = "PYTHONHASHSEED"


class _Started:
    """The server of this process, if there is one."""

    process: subprocess.Popen[Any] | None = None
    address = ""


def started(interpreter: str) -> str:
    """Start the server by this command unless it runs, and return its address; empty where there is none.

    There is none where the system has no words for it (macOS), and where the environment names another, or none. It
    stands in the environment from then on, for processes that Java starts without asking a session.
    """
    named = os.environ.get(ADDRESS)
    if named is not None and (not named or named != _Started.address):
        return ""
    if _Started.process is None or _Started.process.poll() is not None:
        end()
        try:
            os.close(os.pidfd_open(os.getpid()))
            _start(interpreter)
        except (OSError, AttributeError):
            # Spark starts its processes one by one then, as it does without us.
            return ""
    os.environ[ADDRESS] = _Started.address
    return _Started.address


def _start(interpreter: str) -> None:
    directory = Path(tempfile.mkdtemp(prefix="magnetar-forks-"))
    address = directory / "socket"
    # What Spark gives its workers when nothing is said, since it cannot be changed later.
    environment = {**ONE_THREAD, _HASH_SEED: "0", **os.environ}
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(address))
            listener.listen(_BACKLOG)
            _Started.process = subprocess.Popen(
                [interpreter, "-m", "magnetar.spark.forks.fork_server", str(listener.fileno())],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                pass_fds=[listener.fileno()],
                env=environment,
                process_group=0,
            )
    except OSError:
        _remove(address)
        raise
    _Started.address = str(address)


def end() -> None:
    """End the server; forks go on until Spark ends them."""
    process, _Started.process = _Started.process, None
    if process is not None and process.stdin is not None:
        process.stdin.close()
        await_end(process, _END)
    address, _Started.address = _Started.address, ""
    if address:
        if os.environ.get(ADDRESS) == address:
            del os.environ[ADDRESS]
        # The server does it, unless it was killed.
        _remove(Path(address))


def _remove(address: Path) -> None:
    with contextlib.suppress(OSError):
        address.unlink(missing_ok=True)
        address.parent.rmdir()
