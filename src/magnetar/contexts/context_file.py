"""contexts.toml: read whole, checked whole, and replaced in one step with mode 0600."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from magnetar.contexts.context import Context, check_context_name, context_of
from magnetar.model.errors import ConflictError, InvalidValueError
from magnetar.runtime.clock import steady_seconds
from magnetar.runtime.files.pipe import read_without_waiting

_BYTES_MAX: Final = 1 << 20
_PATIENCE: Final = 10.0
"""Seconds for which a change waits for another one to end."""
_HEAD: Final = "# Saved connections of magnetar; magnetar contexts --help. Secrets stand here by reference only.\n"


@dataclass(frozen=True)
class Contexts:
    """All saved connections, and which of them is used where none is named."""

    path: Path
    current: str | None = None
    by_name: dict[str, Context] = field(default_factory=dict)

    def named(self, name: str) -> Context:
        """Return a context. Raises InvalidValueError with the names that there are."""
        found = self.by_name.get(name)
        if found is None:
            there = f"there are {', '.join(sorted(self.by_name))}" if self.by_name else "none is saved"
            raise InvalidValueError(
                f"context {name!r} is not in {self.path}: {there}; save it with: magnetar contexts add {name}"
            )
        return found

    def with_context(self, name: str, context: Context) -> Contexts:
        """Return all contexts with this one added or replaced; the first becomes the current one."""
        check_context_name(name)
        return replace(self, by_name={**self.by_name, name: context}, current=self.current or name)

    def without(self, name: str) -> Contexts:
        """Return all contexts but this one. Raises InvalidValueError if it is not there."""
        self.named(name)
        left = {key: value for key, value in self.by_name.items() if key != name}
        return replace(self, by_name=left, current=None if self.current == name else self.current)

    def using(self, name: str) -> Contexts:
        """Return the same contexts with another current one. Raises InvalidValueError if it is not there."""
        self.named(name)
        return replace(self, current=name)

    def write(self) -> None:
        """Replace the file in one step; only its owner may read it. Raises OSError."""
        target = _directory_made(self.path)
        handle, temporary = tempfile.mkstemp(prefix=".contexts-", dir=target.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(self._text().encode())
                file.flush()
                os.fsync(file.fileno())  # noqa: TID251  # a file of the user, no part of the store
            os.replace(temporary, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise

    def _text(self) -> str:
        lines = [_HEAD]
        if self.current is not None:
            lines.append(f"current = {_quoted(self.current)}\n")
        for name, context in sorted(self.by_name.items()):
            lines.append(f"\n[contexts.{_quoted(name)}]\n")
            for key, value in context.said().items():
                lines.append(f"{key} = {_quoted(value) if isinstance(value, str) else str(value).lower()}\n")
        return "".join(lines)


def contexts_path(environment: Mapping[str, str] = os.environ) -> Path:
    """Return where the file stands: under XDG_CONFIG_HOME, else ``~/.config``."""
    base = environment.get("XDG_CONFIG_HOME", "")
    root = Path(base) if base.startswith("/") else Path(environment.get("HOME") or os.path.expanduser("~")) / ".config"
    return root / "magnetar" / "contexts.toml"


def read_contexts(environment: Mapping[str, str] = os.environ) -> Contexts:
    """Return what is saved; no file is no context. Raises InvalidValueError naming the file and what is wrong."""
    path = contexts_path(environment)
    try:
        content = read_without_waiting(path, _BYTES_MAX + 1)
    except FileNotFoundError:
        return Contexts(path)
    except OSError as error:
        raise InvalidValueError(f"{path} cannot be read: {error.strerror}") from None
    if len(content) > _BYTES_MAX:
        raise InvalidValueError(f"{path} has more than {_BYTES_MAX} bytes, which no file of contexts has")
    try:
        document = tomllib.loads(content.decode("utf-8-sig"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidValueError(f"{path} is no TOML: {error}; mend it or remove it") from None
    return _checked(path, document)


def change_contexts(change: Callable[[Contexts], Contexts], environment: Mapping[str, str] = os.environ) -> None:
    """Make a change of what is saved; no other command makes one meanwhile, so none is lost.

    Raises OSError, InvalidValueError, and ConflictError if another change does not end.
    """
    with _alone(contexts_path(environment)):
        change(read_contexts(environment)).write()


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold the lock of a file of contexts, which stands beside it: the file itself is replaced by each change.

    Where the file system has no locks, there is none.
    """
    beside = _directory_made(path).with_name("contexts.lock")
    with os.fdopen(os.open(beside, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)) as file:
        deadline = steady_seconds() + _PATIENCE
        while not _locked(file.fileno()):
            if steady_seconds() >= deadline:
                raise ConflictError(f"another command changes {path} and does not end; it holds {beside}")
            time.sleep(0.02)
        # the system releases it when this process ends, in whatever way
        yield


def _locked(number: int) -> bool:
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS):
            raise
    return True


def _directory_made(path: Path) -> Path:
    """Return the path with all links resolved; its directory is made if it is missing."""
    target = Path(os.path.realpath(path))
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return target


def _checked(path: Path, document: dict[str, object]) -> Contexts:
    unknown = sorted(document.keys() - {"current", "contexts"})
    if unknown:
        raise InvalidValueError(f"{path}: {unknown[0]} is not known; there are current and contexts")
    tables = document.get("contexts", {})
    if not isinstance(tables, dict):
        raise InvalidValueError(f"{path}: contexts is no table")
    try:
        names = [check_context_name(name) for name in tables]
    except InvalidValueError as error:
        raise InvalidValueError(f"{path}: {error}") from None
    found = {name: context_of(name, tables[name], str(path)) for name in names}
    current = document.get("current")
    if current is not None and current not in found:
        raise InvalidValueError(f"{path}: current names {current!r}, which is no context of the file")
    return Contexts(path, str(current) if current is not None else None, found)


def _quoted(text: str) -> str:
    """Return a TOML basic string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(one if one >= " " and one != "\x7f" else f"\\u{ord(one):04X}" for one in escaped) + '"'
