"""What jobs report: findings with exact positions, as a table for people and as a file for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # the same

from magnetar.model.errors import InvalidValueError

SHOWN_MAX: Final = 100
"""Rows of a table on the terminal; files have all."""


class Finding(NamedTuple):
    """One thing that is not as it should be."""

    kind: str
    topic: str
    place: str
    """ledger:entry:batch of the first message that it is about."""
    until: str
    """The last one, or the one it collides with; may be empty."""
    producer: str
    sequence: int | None
    messages: int
    """How many it is about, as far as that is known; entries where the messages are gone."""
    detail: str


def check_file(path: Path | None) -> None:
    """Before the work begins: whether findings can be written there. Raises InvalidValueError."""
    if path is None:
        return
    if path.suffix not in (".json", ".parquet"):
        raise InvalidValueError(f"{path}: the result can be written as .json or .parquet; name the file so")
    if not path.parent.is_dir():
        raise InvalidValueError(f"{path}: there is no directory {path.parent}")


def write_rows(path: Path, rows: Sequence[NamedTuple]) -> None:
    """As JSON lines or Parquet, by the file's name."""
    dicts = [row._asdict() for row in rows]
    if path.suffix == ".json":
        path.write_text("".join(json.dumps(one) + "\n" for one in dicts))
    else:
        pq.write_table(pa.Table.from_pylist(dicts), path)


def show(title: str, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A table on standard output; the first `SHOWN_MAX` rows."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for name in names:
        table.add_column(name, overflow="fold")
    listed = list(rows)
    for row in listed[:SHOWN_MAX]:
        table.add_row(*("" if value is None else str(value) for value in row))
    console = Console()
    console.print(table)
    if len(listed) > SHOWN_MAX:
        console.print(f"… and {len(listed) - SHOWN_MAX} more; --out FILE has all of them")
