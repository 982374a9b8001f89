"""A secret by reference: ``env:NAME``, ``file:/path``, ``command:PROGRAM ARGUMENTS``, also written ``${env:NAME}``.

The reference travels and is shown; the value is read by the process that needs it, each time that it needs it, and
appears in no text of ours. A value that a program gives itself is shown as ``***`` and cannot be pickled.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable
from typing import Final
from urllib.parse import unquote

from magnetar.model.errors import InvalidValueError, MagnetarError, ServerError
from magnetar.runtime.files.pipe import read_without_waiting
from magnetar.security.credentials.supplier import SECRET_BYTES_MAX, output_of

FORMS: Final = "env:NAME, file:/path or command:PROGRAM ARGUMENTS"
"""The forms of a reference, for errors."""
_REFERENCE: Final = re.compile(r"(env|file|command):(.+)", re.DOTALL)
_WRAPPED: Final = re.compile(r"\$\{([^{}]*)\}")


def absolute_reference(text: str, absolute: Callable[[str], str]) -> str:
    """Return a reference as it means the same in other directories: a relative file, and a program by a relative path,
    by their absolute paths. Other texts are returned unchanged."""
    wrapped = _WRAPPED.fullmatch(text.strip())
    found = _REFERENCE.fullmatch(wrapped[1] if wrapped else text.strip())
    if found is None or found[1] == "env":
        return text
    kind, name = found[1], found[2].strip()
    if kind == "file":
        path = _path(name)
        return text if path.startswith("/") else f"file:{absolute(path)}"
    program, blank, arguments = name.partition(" ")
    if "/" not in program or not re.fullmatch(r"[\w.+-][\w./+-]*", program):
        return text
    return f"command:{shlex.quote(absolute(program))}{blank}{arguments}"


def _path(name: str) -> str:
    """Return the path of what follows ``file:``, which may be the rest of a URL."""
    return unquote(name.removeprefix("//").removeprefix("localhost")) if name.startswith("//") else name


class CredentialsError(MagnetarError):
    """Credentials cannot be had; the text names their reference and never their value."""

    code = ServerError.AuthenticationError
    status = 401


class CredentialsDelayedError(CredentialsError):
    """Credentials cannot be had now: an issuer or a program did not answer; it may a little later."""


class Secret:
    """One secret, by reference or (``given``) as a value that stays in this process."""

    __slots__ = ("_kind", "_name")

    def __init__(self, kind: str, name: str) -> None:
        self._kind = kind
        self._name = name

    @classmethod
    def given(cls, value: str) -> Secret:
        """Return a secret of which the value is known; it cannot be pickled."""
        return cls("value", value)

    @classmethod
    def parse(cls, text: str, what: str) -> Secret:
        """Return the secret of a reference. Raises InvalidValueError, which names ``what`` and never shows the text,
        since it may be the secret itself."""
        found = cls.of_reference(text, what)
        if found is None:
            raise InvalidValueError(
                f"{what} must be a reference to a secret, {FORMS}, and not the secret itself: options are shown in "
                "plans, logs and checkpoints (docs/security.md)"
            )
        return found

    @classmethod
    def of_reference(cls, text: str, what: str) -> Secret | None:
        """Return the secret of a reference, None if the text has not the form of one. Raises InvalidValueError for a
        reference that can mean nothing."""
        text = text.strip()
        wrapped = _WRAPPED.fullmatch(text)
        found = _REFERENCE.fullmatch(wrapped[1] if wrapped else text)
        if found is None:
            return None
        kind, name = found[1], found[2].strip()
        if kind == "file":
            name = _path(name)
            if not name.startswith("/"):
                raise InvalidValueError(f"{what}: file:{name} is not absolute; workers run in directories of their own")
        return cls(kind, name)

    @property
    def is_reference(self) -> bool:
        return self._kind != "value"

    def __repr__(self) -> str:
        return f"{self._kind}:{self._name}" if self.is_reference else "***"

    @property
    def file(self) -> str | None:
        """The path of the file that the reference names, if it names one."""
        return self._name if self._kind == "file" else None

    def described(self, what: str) -> str:
        """Return what errors call it: ``what`` it is with its reference, which a value has not."""
        return f"the {what} from {self}" if self.is_reference else f"the {what} that was given"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and (self._kind, self._name) == (other._kind, other._name)

    def __hash__(self) -> int:
        return hash((self._kind, self._name))

    def __reduce__(self) -> tuple[type[Secret], tuple[str, str]]:
        if not self.is_reference:
            raise InvalidValueError(
                f"a secret that was given as a value does not leave its process; give a reference: {FORMS}"
            )
        return Secret, (self._kind, self._name)

    def reveal(self) -> str:
        """Return the value as it is now, without blanks around it. Raises CredentialsError, CredentialsDelayedError."""
        if self._kind == "value":
            value = self._name
        elif self._kind == "env":
            value = os.environ.get(self._name, "")
            if self._name not in os.environ:
                spark = "pyspark" in sys.modules
                where = f"; on Spark's executors it is set by spark.executorEnv.{self._name}" if spark else ""
                raise CredentialsError(f"the environment has no variable {self._name}, which {self} names{where}")
        elif self._kind == "file":
            value = self._file()
        else:
            value = self._supplied()
        if not value.strip():
            raise CredentialsError(f"{self.described('secret')} is empty")
        return value.strip()

    def _file(self) -> str:
        try:
            data = read_without_waiting(self._name, SECRET_BYTES_MAX + 1)
        except (OSError, ValueError) as error:
            raise CredentialsError(
                f"{self} cannot be read on this machine: {getattr(error, 'strerror', None) or 'it is no path'}"
            ) from None
        return self._text(data)

    def _supplied(self) -> str:
        try:
            return self._text(output_of(self._name))
        except TimeoutError:
            raise CredentialsDelayedError(f"{self} did not end in time") from None
        except (OSError, ValueError) as error:
            raise CredentialsError(f"{self} failed: {error}") from None

    def _text(self, data: bytes) -> str:
        if len(data) > SECRET_BYTES_MAX:
            raise CredentialsError(f"{self} has more than {SECRET_BYTES_MAX} bytes; is it the right one?")
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise CredentialsError(f"{self} is no text") from None
