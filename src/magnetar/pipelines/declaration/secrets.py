"""References to secrets: ``${env:NAME}`` and ``${file:/path}``, resolved at the last moment and never printed.

A model keeps the text as it was written; only `resolve` returns values, when a connection is made. The values that it
returned are remembered here, so that `redact` can remove them from texts of other origin, such as errors of Spark.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Final

from magnetar.model.errors import InvalidValueError
from magnetar.runtime.files.pipe import read_without_waiting, why_unread

_REFERENCE: Final = re.compile(r"\$\{([^}]*)\}")
_SHORTEST: Final = 4
"""Shorter values are not redacted: they would remove ordinary words."""

_REFERRING: Final = frozenset({"token", "pulsar.client.authparams", "decryption.privatekey"})
"""Options that take references, in lower case."""

_given: set[str] = set()


def is_reference(text: str) -> bool:
    """Return whether the whole text is one reference."""
    return _REFERENCE.fullmatch(text) is not None


def problem_of(text: str) -> str | None:
    """Return what is wrong with the form of the references in a text; they need not exist yet."""
    for found in _REFERENCE.finditer(text):
        kind, colon, name = found[1].partition(":")
        if kind not in ("env", "file") or not colon or not name:
            return f"{found[0]!r} is no reference; write ${{env:NAME}} or ${{file:/path}}"
    begun = text.rfind("${")
    if begun >= 0 and "}" not in text[begun:]:
        return f"{text[begun:]!r} is not closed; write ${{env:NAME}} or ${{file:/path}}"
    return None


def resolve(text: str) -> str:
    """Return the text with its references resolved. InvalidValueError names one that cannot be."""
    return _REFERENCE.sub(_value, text)


def resolved_options(given: Mapping[str, str]) -> dict[str, str]:
    """Return options of format("pulsar") with references resolved, except where the option itself takes one: Spark
    shows options, so a secret must not become part of them. Raises InvalidValueError."""
    return {name: text if name.lower() in _REFERRING else resolve(text) for name, text in given.items()}


def _value(found: re.Match[str]) -> str:
    kind, _, name = found[1].partition(":")
    if kind == "env":
        value = os.environ.get(name)
        if value is None:
            raise InvalidValueError(f"the environment has no variable {name}, which ${{env:{name}}} stands for")
    elif kind == "file":
        try:
            value = read_without_waiting(name).decode().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidValueError(f"${{file:{name}}} cannot be read: {why_unread(error)}") from None
    else:
        raise InvalidValueError(problem_of(found[0]) or f"{found[0]!r} is no reference")
    if len(value) >= _SHORTEST:
        _given.add(value)
    return value


def redact(text: str) -> str:
    """Return a text without any secret that was resolved in this process."""
    for value in sorted(_given, key=len, reverse=True):
        text = text.replace(value, "***")
    return text
