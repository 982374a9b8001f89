"""YAML with positions: every value knows its file, line, column and key path; mistakes are collected, not raised.

The text is composed into nodes and never constructed: a scalar is what was written, so ``header: true`` is the text
"true" and not a boolean that would have to be converted back for an option. Unknown keys of a mapping are mistakes,
reported with the nearest known name. Reading a file once gives all its mistakes.
"""

from __future__ import annotations

import difflib
import itertools
import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import yaml

from magnetar.model.errors import InvalidValueError
from magnetar.runtime.files.pipe import opened_without_waiting

_NULLS: Final = ("", "null", "~", "Null", "NULL")
_UNITS: Final = {"ms": 0.001, "s": 1.0, "sec": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)", re.ASCII)
_SECONDS_MAX: Final = 10 * 366 * 86_400
"""Ten years."""
_NOT_WORDS: Final = {
    f"tag:yaml.org,2002:{tag}": what
    for tag, what in {"int": "a number", "float": "a number", "bool": "yes or no", "timestamp": "a date"}.items()
}
_FILE_MAX: Final = 1 << 20
"""Bytes; a file that people write has a few thousand."""
_NODES_MAX: Final = 20_000
"""Keys and values of a file, at most."""
_DEPTH: Final = 40
"""Mappings and lists inside each other, at most."""
_VALUES_MAX: Final = 10_000
"""Values of parameters, at most; aliases can make a small file a huge one."""


class DocumentProblem(NamedTuple):
    """One mistake in a file."""

    where: str
    """file:line:column"""
    path: str
    """The key path, for example ``sources.flights.topic``."""
    text: str
    """What is wrong and what to write instead."""

    def __str__(self) -> str:
        return f"{self.where}: {self.path}: {self.text}" if self.path else f"{self.where}: {self.text}"


class InvalidPipelineError(InvalidValueError):
    """A pipeline's file has mistakes, one per line of the text."""

    def __init__(self, problems: Iterable[DocumentProblem]) -> None:
        # What is looked at twice is noted twice.
        self.problems = tuple(dict.fromkeys(problems))
        super().__init__("\n".join(map(str, self.problems)))


def nearest(name: str, known: Iterable[str]) -> str:
    """Return ``did you mean ...?``, or the known names."""
    names = sorted(set(known))
    near = difflib.get_close_matches(name, names, 1, 0.6)
    return f"did you mean {near[0]!r}?" if near else f"known are {', '.join(names)}" if names else "there is none"


class Item:
    """One value of the document; all items of a document share one list of problems."""

    def __init__(self, node: yaml.Node, path: str, file: str, problems: list[DocumentProblem]) -> None:
        self._node = node
        self._file = file
        self.path = path
        self.problems = problems

    @property
    def where(self) -> str:
        """file:line:column, counted from 1."""
        mark = self._node.start_mark
        return f"{self._file}:{mark.line + 1}:{mark.column + 1}"

    def problem(self, text: str) -> None:
        """Note a mistake here."""
        self.problems.append(DocumentProblem(self.where, self.path, text))

    @property
    def is_mapping(self) -> bool:
        return isinstance(self._node, yaml.MappingNode)

    @property
    def is_scalar(self) -> bool:
        return isinstance(self._node, yaml.ScalarNode)

    def _child(self, node: yaml.Node, name: str) -> Item:
        return Item(node, f"{self.path}.{name}" if self.path else name, self._file, self.problems)

    def at(self, *names: str) -> Item:
        """Return the item below these keys, or the last one that exists."""
        found = self
        for name in names:
            pairs = found._node.value if isinstance(found._node, yaml.MappingNode) else ()
            below = next((value for key, value in pairs if key.value == name), None)
            if below is None:
                break
            found = found._child(below, name)
        return found

    def entries(self, what: str) -> dict[str, Item]:
        """Return all items of a mapping with any names; ``what`` they are, for the error."""
        node = self._node
        if not isinstance(node, yaml.MappingNode):
            self.problem(f"this must be a mapping of {what}")
            return {}
        found: dict[str, Item] = {}
        for key, value in node.value:
            mark = key.start_mark
            place = f"{self._file}:{mark.line + 1}:{mark.column + 1}"
            if not isinstance(key, yaml.ScalarNode):
                # Not shown: with aliases its text could be endless.
                self.problems.append(DocumentProblem(place, self.path, "a key must be a plain name"))
                continue
            child = self._child(value, key.value)
            if key.value in found:
                self.problems.append(DocumentProblem(place, child.path, "this key stands here twice; remove one"))
            else:
                found[key.value] = child
        return found

    def keys(self, known: Iterable[str], *, required: Iterable[str] = ()) -> dict[str, Item]:
        """Return the items of a mapping with known keys; unknown and missing ones are noted."""
        names = list(known)
        found = self.entries(", ".join(names))
        for name in [name for name in found if name not in names]:
            found.pop(name).problem(f"{name!r} is not known here; {nearest(name, names)}")
        if self.is_mapping:
            for name in required:
                if name not in found:
                    self.problem(f"{name!r} is missing")
        return found

    def text(self, *, empty: bool = False) -> str:
        """Return the text of a single value; empty, and noted unless it may be, if there is none."""
        node = self._node
        if not isinstance(node, yaml.ScalarNode):
            self.problem("this must be a single value")
            return ""
        if node.style is None and node.value in _NULLS:
            self.problem("there is no value; write one or remove the key")
            return ""
        text = str(node.value).strip()
        if not text and not empty:
            self.problem("this is empty; write a value or remove the key")
        return text

    def words(self) -> str:
        """Return the text of a value that must be text; a number, a date or yes and no must be in quotes."""
        text = self.text()
        node = self._node
        if text and isinstance(node, yaml.ScalarNode) and node.style is None and node.tag in _NOT_WORDS:
            self.problem(f"{text} is {_NOT_WORDS[node.tag]}; write it in quotes if it is meant")
            return ""
        return text

    def texts(self) -> list[str]:
        """Return the texts of a list of values, or of one."""
        return [one.text() for one in self.items()] if isinstance(self._node, yaml.SequenceNode) else [self.text()]

    def items(self) -> list[Item]:
        """Return the elements of a list."""
        node = self._node
        if not isinstance(node, yaml.SequenceNode):
            self.problem("this must be a list, each element beginning with '- '")
            return []
        return [Item(one, f"{self.path}[{index}]", self._file, self.problems) for index, one in enumerate(node.value)]

    def choice(self, choices: Iterable[str]) -> str:
        """Return one of these words; the first one, and noted, if it is none of them."""
        names = list(choices)
        text = self.text()
        if text and text not in names:
            self.problem(f"{text!r} cannot be; it can be {', '.join(names)}")
        return text if text in names else names[0]

    def seconds(self) -> float:
        """Return a duration such as ``500 ms``, ``10 s``, ``5 min``, ``1 h``, in seconds."""
        text = self.text()
        match = _DURATION.fullmatch(text)
        if match is None or match[2] not in _UNITS or float(match[1]) * _UNITS[match[2]] > _SECONDS_MAX:
            if text:
                unit = f" {nearest(match[2], _UNITS)}" if match is not None and match[2] not in _UNITS else ""
                self.problem(f"{text!r} is no duration; write for instance 500 ms, 10 s, 5 min or 1 h.{unit}")
            return 0.0
        return float(match[1]) * _UNITS[match[2]]

    def plain(self) -> object:
        """Return the value as JSON would have it, for parameters of functions; None, and noted, if it is too large."""
        try:
            return _plain(self._node, 0, itertools.count())
        except InvalidValueError as error:
            self.problem(str(error))
            return None


def _plain(node: yaml.Node, depth: int, counter: Iterator[int]) -> object:
    if depth > _DEPTH:
        raise InvalidValueError("values are nested too deeply")
    if next(counter) > _VALUES_MAX:
        raise InvalidValueError(f"there are more than {_VALUES_MAX:,} values; read them from a file")
    if isinstance(node, yaml.MappingNode):
        return {str(key.value): _plain(value, depth + 1, counter) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [_plain(one, depth + 1, counter) for one in node.value]
    try:
        value: object = yaml.safe_load(yaml.serialize(node))
    except (ValueError, yaml.YAMLError) as error:
        # Words like a date that no calendar has, or a number of more digits than Python reads.
        raise InvalidValueError(
            f"{str(node.value)[:40]!r} is no value: {str(error).splitlines()[0].partition(';')[0]}"
        ) from None
    return value


def text_of(path: Path) -> str:
    """Return the text of a file. InvalidPipelineError if it is none, or none that can be a pipeline's."""
    try:
        with opened_without_waiting(path) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise _no_file(path, "this is no regular file; name the YAML file of a pipeline")
            data = file.read(_FILE_MAX + 1)
    except IsADirectoryError:
        raise _no_file(path, "this is a directory; name the YAML file of a pipeline") from None
    except FileNotFoundError:
        raise _no_file(path, "there is no such file; docs/pipelines.md has an example of one") from None
    except OSError as error:
        raise _no_file(path, f"this cannot be read: {error.strerror}") from None
    if len(data) > _FILE_MAX:
        raise _no_file(path, f"this has more than {_FILE_MAX:,} bytes, so it is no pipeline; name its YAML file")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        before = data[: error.start]
        place = f"{path}:{before.count(10) + 1}:{len(before) - before.rfind(10)}"
        text = f"the byte 0x{data[error.start]:02x} is not UTF-8; save the file as text in UTF-8"
        raise InvalidPipelineError([DocumentProblem(place, "", text)]) from None


def _no_file(path: Path, text: str) -> InvalidPipelineError:
    return InvalidPipelineError([DocumentProblem(str(path), "", text)])


def _check_bounds(text: str, file: str) -> None:
    """Refuse what is nested too deeply or has too many values, before anything is made of it: making it recurses."""
    depth = 0
    for number, event in enumerate(yaml.parse(text, Loader=yaml.SafeLoader)):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth <= _DEPTH and number <= _NODES_MAX:
            continue
        wrong = (
            f"values are nested more than {_DEPTH} deep, and a pipeline needs 6; close the brackets before"
            if depth > _DEPTH
            else f"there are more than {_NODES_MAX:,} keys and values up to here; make several pipelines of it"
        )
        mark = event.start_mark
        place = f"{file}:{mark.line + 1}:{mark.column + 1}" if mark is not None else file
        raise InvalidPipelineError([DocumentProblem(place, "", wrong)])


def read(text: str, file: str) -> Item:
    """Return the root of a document. Raises InvalidPipelineError if it is not YAML."""
    try:
        _check_bounds(text, file)
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{file}:{mark.line + 1}:{mark.column + 1}" if mark is not None else file
        text = "; ".join(part for part in (error.context, error.problem) if part)
        raise InvalidPipelineError([DocumentProblem(place, "", f"this is no YAML: {text}")]) from None
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        place = f"{file}:{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"
        wrong = f"the character U+{ord(text[error.position]):04X} cannot stand in YAML; remove it"
        raise InvalidPipelineError([DocumentProblem(place, "", wrong)]) from None
    except yaml.YAMLError as error:
        raise InvalidPipelineError([DocumentProblem(file, "", f"this is no YAML: {error}")]) from None
    if node is None:
        raise InvalidPipelineError(
            [DocumentProblem(f"{file}:1:1", "", "the file is empty; docs/pipelines.md has an example")]
        )
    return Item(node, "", file, [])
