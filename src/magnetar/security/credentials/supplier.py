"""A program that prints a secret: run without a shell, with bounds on its time and its output."""

from __future__ import annotations

import os
import select
import shlex
import signal
import subprocess
from contextlib import suppress
from typing import Final

from magnetar.runtime.clock import steady_seconds

SECRET_BYTES_MAX: Final = 64 * 1024
"""No secret is larger; a file or output that is, is something else."""
_PATIENCE: Final = 30.0
_PIECE: Final = 1 << 14


def output_of(command: str) -> bytes:
    """Return what a program writes to its standard output, up to a byte more than a secret may have.

    What it says elsewhere is thrown away, since it might be the secret. Raises TimeoutError, OSError, ValueError.
    """
    words = shlex.split(command)
    if not words:
        raise ValueError("no program is named")
    try:
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        raise OSError(f"the program cannot be started: {error.strerror}") from None
    deadline = steady_seconds() + _PATIENCE
    assert process.stdout is not None
    try:
        data = _read(process.stdout.fileno(), deadline)
        if len(data) > SECRET_BYTES_MAX:
            return data
        try:
            ended = process.wait(max(deadline - steady_seconds(), 0.0))
        except subprocess.TimeoutExpired:
            raise TimeoutError from None
        if ended:
            raise ValueError(f"it ended with status {ended}; run it by hand to see why")
        return data
    finally:
        process.stdout.close()
        if process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _read(source: int, deadline: float) -> bytes:
    data = b""
    while len(data) <= SECRET_BYTES_MAX:
        left = deadline - steady_seconds()
        if left <= 0 or not select.select([source], [], [], left)[0]:
            raise TimeoutError
        piece = os.read(source, _PIECE)
        if not piece:
            break
        data += piece
    return data[: SECRET_BYTES_MAX + 1]
