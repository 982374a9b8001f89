"""Command lines with the habits of picocli, which Apache Pulsar's tools are built with.

Long flags with ``=`` or a space, short flags of several letters (``-bt``), values that hang on a short flag (``-p5``),
clusters of short flags without values (``-fd``), lists with commas or repeated, ``--`` before words that begin with a
dash, and ``@FILE`` for the words of a file.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NoReturn

from magnetar.cli.admin.table import Argument, CommandFlag
from magnetar.cli.admin.values import REPEATED, Value, convert, truth
from magnetar.model.errors import InvalidValueError
from magnetar.runtime.files.pipe import why_unread

_FILE_BYTES_MAX: Final = 1 << 20


class UsageError(InvalidValueError):
    """The words are not those of the command; help says what it takes."""


def empty_value(name: str) -> UsageError:
    """What is wrong with a name that is empty, which a variable that is not set leaves."""
    return UsageError(f"{name} is empty; is a variable not set?")


class HelpWanted(Exception):
    """The words ask for help."""


class VersionWanted(Exception):
    """The words ask which release this is."""


def with_files(words: Sequence[str]) -> list[str]:
    """Return the words with ``@FILE`` replaced by the words of that file; ``@@x`` is ``@x``. Raises UsageError."""
    found: list[str] = []
    for word in words:
        if word.startswith("@@"):
            found.append(word[1:])
        elif word.startswith("@") and len(word) > 1 and os.path.isfile(word[1:]):
            found += _words_of(Path(word[1:]))
        else:
            found.append(word)
    return found


def _words_of(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            content = file.read(_FILE_BYTES_MAX + 1)
        if len(content) > _FILE_BYTES_MAX:
            raise UsageError(f"@{path}: more than {_FILE_BYTES_MAX} bytes of words")
        return shlex.split(content.decode(), comments=True)
    except (OSError, ValueError) as error:
        raise UsageError(f"@{path} cannot be read as words: {why_unread(error)}") from None


class Parser:
    """Takes the words of one command apart; used once."""

    def __init__(self, flags: Sequence[CommandFlag], arguments: Sequence[Argument] = (), *, stop: bool = False) -> None:
        self._by_name = {name: flag for flag in flags for name in flag.names}
        self._flags = flags
        self._arguments = arguments
        self._stop = stop
        """Whether the first word that is no flag ends the flags, as before the name of a group."""
        self.values: dict[str, Value] = {}
        self.rest: list[str] = []

    def parse(self, words: Sequence[str]) -> dict[str, Value]:
        """Return the value of every flag and argument. Raises UsageError, HelpWanted, VersionWanted."""
        left = list(words)
        while left:
            word = left.pop(0)
            if word == "--":
                self.rest += left
                break
            if word in self._by_name or (len(word) > 1 and word.startswith("-")):
                self._flag(word, left)
            elif self._stop:
                self.rest = [word, *left]
                break
            else:
                self.rest.append(word)
        self._place()
        return self._complete()

    def _flag(self, word: str, left: list[str]) -> None:
        name, equals, value = word.partition("=")
        if flag := self._by_name.get(name):
            self._set(flag, name, value if equals else None, left)
            return
        if name in ("-h", "--help"):
            raise HelpWanted
        if name in ("-v", "--version"):
            raise VersionWanted
        if not word.startswith("--"):
            self._short(word, left)
            return
        self._unknown(name)

    def _short(self, word: str, left: list[str]) -> None:
        """A cluster ``-fd``, or a value that hangs on a flag, ``-p5``; the longest name counts."""
        for end in range(len(word) - 1, 1, -1):
            flag = self._by_name.get(word[:end])
            if flag is None:
                continue
            if flag.kind != "switch":
                self._set(flag, word[:end], word[end:].removeprefix("="), left)
                return
            self._set(flag, word[:end], None, left)
            self._flag("-" + word[end:], left)
            return
        self._unknown(word.partition("=")[0])

    def _set(self, flag: CommandFlag, name: str, value: str | None, left: list[str]) -> None:
        before = self.values.get(flag.key)
        if flag.key in self.values and flag.kind not in REPEATED:
            raise UsageError(f"{name} is given more than once")
        if flag.kind == "switch":
            self.values[flag.key] = True if value is None else self._converted(name, "truth", value, None)
            return
        if value is None:
            if not left or left[0] in self._by_name or left[0].partition("=")[0] in self._by_name:
                raise UsageError(f"{name} needs a value")
            value = left.pop(0)
        self.values[flag.key] = self._converted(name, flag.kind, value, before)

    @staticmethod
    def _converted(name: str, kind: str, value: str, before: Value) -> Value:
        try:
            return truth(value) if kind == "truth" else convert(kind, value, before)
        except InvalidValueError as error:
            raise UsageError(f"{name}: {error}") from None

    def _place(self) -> None:
        """Give the words that are no flags to the arguments."""
        if self._stop:
            return
        words = list(self.rest)
        for argument in self._arguments:
            if argument.kind == "repeated":
                self.values[argument.name], words = words, []
            elif words:
                self.values[argument.name] = words.pop(0)
        if words:
            raise UsageError(f"there is no place for {words[0][:80]!r}")

    def _complete(self) -> dict[str, Value]:
        """Add defaults, and name everything that is missing."""
        missing = [argument.name.upper() for argument in self._arguments if self._lacks(argument)]
        missing += [max(flag.names, key=len) for flag in self._flags if flag.required and flag.key not in self.values]
        if missing:
            raise UsageError(f"{' and '.join(missing)} must be given")
        for flag in self._flags:
            if flag.key not in self.values:
                empty: Value = False if flag.kind == "switch" else None
                self.values[flag.key] = convert(flag.kind, flag.default, None) if flag.default else empty
        for argument in self._arguments:
            self.values.setdefault(argument.name, None)
        return self.values

    def _lacks(self, argument: Argument) -> bool:
        return argument.required and not self.values.get(argument.name)

    def _unknown(self, name: str) -> NoReturn:
        from difflib import get_close_matches

        close = get_close_matches(name, self._by_name, 1, 0.6)
        hint = f"; do you mean {close[0]}?" if close else ""
        raise UsageError(f"{name[:80]} is not known here{hint}")
