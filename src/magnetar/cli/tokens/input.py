"""Where a token or a key is read from: an argument, standard input, a file, the environment."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from magnetar.model.errors import InvalidValueError
from magnetar.runtime.command_line import complain
from magnetar.runtime.files.pipe import read_without_waiting
from magnetar.security.exposed_files import exposure
from magnetar.security.tokens.key_source import BYTES_MAX, read_key, secret_file

VARIABLE = "TOKEN"


def token(argument: str | None, *, stdin: bool, file: Path | None) -> bytes:
    """The text of a token, wherever it stands. Raises InvalidValueError, OSError."""
    if argument is not None and argument != "-":
        if len(argument) < 4096 and os.path.isfile(argument):
            raise InvalidValueError(
                f"{argument!r} is a file, and here the token itself is wanted; --token-file reads it"
            )
        return argument.encode()
    if stdin or argument == "-":
        return sys.stdin.buffer.read(BYTES_MAX).strip()
    if file is not None:
        content = read_without_waiting(file, BYTES_MAX).strip()
        if not content:
            raise InvalidValueError(f"{file} is empty; --token-file takes a file that holds a token")
        return content
    found = os.environ.get(VARIABLE)
    if found is None:
        raise InvalidValueError(
            "pass a token as an argument, by --stdin, by --token-file or by the environment variable TOKEN"
        )
    return found.encode()


def key(where: str, option: str) -> bytes:
    """The bytes of a key; ``-`` is standard input. Raises InvalidValueError."""
    if where == "-":
        found = sys.stdin.buffer.read(BYTES_MAX)
        if not found:
            raise InvalidValueError(f"{option}: nothing on standard input")
        return found
    return read_key(where, option)


def secret(where: str, option: str) -> bytes:
    """The bytes of a key that others may not have, which says so if they may. Raises InvalidValueError."""
    found = key(where, option)
    file = None if where == "-" else secret_file(where)
    if file is not None and (said := exposure(file, option)):
        complain(said)
    return found
