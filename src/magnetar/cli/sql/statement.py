"""A statement before anything is connected: only queries are run, and the tables they name are topics. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from magnetar.model.errors import InvalidTopicNameError, InvalidValueError
from magnetar.model.names import TopicName

STATEMENT_MAX: Final = 100_000
"""Characters."""
TABLES_MAX: Final = 20
OPERATORS_MAX: Final = 250
"""What joins two things to one: the engine goes through a chain of them by recursion, and a long one ends the process
without a word."""
STANDARD: Final = ("__key", "__publishTime", "__eventTime", "__messageProperties")
"""Columns of metadata that ``*`` stands for, as `Consumer.receive_table` has them; others are there if named."""
_SKIPPED: Final = re.compile(r"(?:\s+|--[^\n]*(?:\n|\Z)|/\*.*?\*/|\()+", re.DOTALL)
_QUOTED: Final = re.compile(r"'[^']*'|\"[^\"]*\"|--[^\n]*|/\*.*?\*/", re.DOTALL)
_OPERATOR: Final = re.compile(
    r"""(?<=[\w)\]'"])\s*(?:\|\||::|[-+*/%&|^])|\b(?:AND|OR|XOR|UNION|INTERSECT|EXCEPT|JOIN)\b""", re.IGNORECASE
)
_WORD: Final = re.compile(r"[A-Za-z]+")
_FILE_FUNCTION: Final = re.compile(
    r"\b(read_(?:csv|ipc|json|parquet))\b|\b((?:read|scan)_\w+)[\"`]?(?:\s|--[^\n]*\n|/\*.*?\*/)*\(",
    re.DOTALL | re.IGNORECASE,
)
_SCAN: Final = re.compile(r"^\W*(?!PYTHON )([A-Za-z]+) SCAN \[", re.MULTILINE)
_UNKNOWN: Final = re.compile(r"relation '(.*)' was not found", re.DOTALL)


class StatementError(InvalidValueError):
    """The statement cannot be run, whatever the topics hold."""


def check_statement(text: str) -> None:
    """Raise InvalidValueError, which names the statement, about everything but SELECT and WITH … SELECT."""
    if len(text) > STATEMENT_MAX:
        raise InvalidValueError(f"the statement has {len(text)} characters; {STATEMENT_MAX} are the most")
    skipped = _SKIPPED.match(text)
    first = _WORD.match(text, skipped.end() if skipped else 0)
    word = first[0][:40].upper() if first else ""
    if word in ("SELECT", "WITH"):
        _check_no_file(text)
        _check_chains(text)
        return
    if not word:
        raise InvalidValueError('there is no statement; write for instance magnetar sql "SELECT * FROM orders LIMIT 5"')
    raise InvalidValueError(
        f"{word} is refused: magnetar sql only reads, and runs one SELECT (or WITH … SELECT); magnetar produce writes "
        "to topics, magnetar admin topics changes them"
    )


def _check_no_file(text: str) -> None:
    """Refuse the engine's functions that open files and addresses: a statement may come from another person.

    They are looked for as words wherever they stand, also in texts and comments, so that nothing depends on reading the
    statement as the engine does.
    """
    found = _FILE_FUNCTION.search(text)
    if found:
        raise InvalidValueError(
            f"{(found[1] or found[2]).lower()} is refused: a statement reads topics only, no files and no addresses; "
            "produce what the file holds to a topic, or give rows out with --parquet FILE and join them elsewhere"
        )


def _check_chains(text: str) -> None:
    """Refuse so many operators that the engine's stack might not hold them."""
    count = sum(1 for _ in _OPERATOR.finditer(_QUOTED.sub("''", text)))
    if count > OPERATORS_MAX:
        raise InvalidValueError(
            f"the statement has {count} operators (+, ||, AND, OR, UNION, JOIN …); {OPERATORS_MAX} are the most: write "
            "IN (…) in place of many OR, or ask in several statements"
        )


def check_plan(plan: str) -> None:
    """Raise StatementError if the plan of a statement reads anything but topics, however it was written."""
    found = _SCAN.search(plan)
    if found:
        raise StatementError(f"{found[1]} SCAN is refused: a statement reads topics only, no files and no addresses")


def metadata_columns(text: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return the columns of metadata that a statement can use: the standard ones, and those it names."""
    words = set(re.findall(r"\w+", text))
    return tuple(name for name in known if name in STANDARD or name in words)


def unknown_table(error: str) -> str | None:
    """Return the table that the engine's error says it does not know, None if it is about something else."""
    found = _UNKNOWN.search(error)
    return None if found is None else found[1]


def topic_of(table: str) -> str:
    """Return the topic of a table's name: a full name, a short one, or tenant.namespace.topic. Raises
    StatementError."""
    try:
        return TopicName.parse(table).fqn
    except InvalidTopicNameError as error:
        raise StatementError(f"table {table!r} is no topic: {error}") from None


def hint(error: str) -> str:
    """Return the next step after an error of the engine, empty if there is none to name."""
    if "parser error" in error:
        return '; a topic\'s name that is no word stands in double quotes: FROM "tenant/namespace/my-topic"'
    if "binary" in error.lower() and ("expected" in error.lower() or "got" in error.lower()):
        return "; keys, and values without a schema, are bytes: CAST(value AS VARCHAR), or --value string"
    return ""
