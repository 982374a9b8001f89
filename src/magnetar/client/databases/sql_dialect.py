"""What SQLite and PostgreSQL say differently about the same tables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from magnetar.model.errors import InvalidValueError

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,40}(\.[A-Za-z_][A-Za-z0-9_]{0,40})?")


class SqlCursor(Protocol):
    """What is asked of a cursor (DB-API 2.0)."""

    @property
    def rowcount(self) -> int: ...
    def execute(self, statement: Any, parameters: Any = ..., /) -> object: ...
    def executemany(self, statement: Any, parameters: Any, /) -> object: ...
    def fetchall(self) -> Sequence[Any]: ...
    def fetchone(self) -> Any: ...
    def close(self) -> None: ...


class SqlConnection(Protocol):
    """What is asked of a connection (DB-API 2.0)."""

    def cursor(self) -> Any: ...
    def commit(self) -> None: ...
    def rollback(self) -> None: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class SqlDialect:
    """The words of one database."""

    name: str
    mark: str
    """What stands for a parameter."""
    number: str
    """The type of a column that numbers rows by itself."""
    blob: str
    lock_row: str
    """What makes a SELECT hold its row until the transaction ends."""

    def sql(self, text: str) -> str:
        """Return a statement with this database's marks in place of ``?``."""
        return text.replace("?", self.mark)


SQLITE: Final = SqlDialect("sqlite", "?", "INTEGER PRIMARY KEY AUTOINCREMENT", "BLOB", "")
POSTGRESQL: Final = SqlDialect(
    "postgresql", "%s", "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY", "BYTEA", " FOR UPDATE"
)
"""For drivers with ``%s`` for parameters, as psycopg and pg8000 have it."""


def table_name(name: str) -> str:
    """Return a table's name, perhaps with a schema, which is written into statements as it is.

    Raises InvalidValueError for what is not a plain name.
    """
    if not _NAME.fullmatch(name):
        raise InvalidValueError(
            f"{name!r} cannot be a table's name here: letters, digits, _, and a schema before a dot"
        )
    return name
