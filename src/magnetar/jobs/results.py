"""The output of jobs: a table on the terminal for people, a JSON or Parquet file for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, get_args, get_type_hints

from magnetar.model.errors import InvalidValueError

SHOWN_MAX: Final = 100
"""Rows of a table on the terminal; files have all."""


def check_file(path: Path | None) -> None:
    """Check, before the work begins, that a result can be written there. Raises InvalidValueError."""
    if path is None:
        return
    if path.suffix not in (".json", ".parquet"):
        raise InvalidValueError(f"{path}: the result can be written as .json or .parquet; name the file so")
    if not path.parent.is_dir():
        raise InvalidValueError(f"{path}: there is no directory {path.parent}")


def write_rows(path: Path, kind: type[tuple[Any, ...]], rows: Sequence[NamedTuple], summary: Mapping[str, Any]) -> None:
    """Write rows as one JSON document or as Parquet, by the file's name; whole or not at all, and valid without rows.

    JSON is the summary with the key ``rows``. Parquet has the columns of ``kind``, and the summary as JSON in its
    schema's metadata, under ``magnetar``.
    """
    from magnetar.spark.durable_files import replace_whole, write_whole

    dicts = [row._asdict() for row in rows]
    if path.suffix == ".json":
        write_whole(path, json.dumps({**summary, "rows": dicts}, indent=1) + "\n")
        return
    import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types
    import pyarrow.parquet as pq  # type: ignore[import-untyped]  # publishes no types

    schema = pa.schema(_columns(kind), metadata={"magnetar": json.dumps(summary)})
    replace_whole(path, lambda beside: pq.write_table(pa.Table.from_pylist(dicts, schema), beside))


def _columns(kind: type[tuple[Any, ...]]) -> list[Any]:
    import pyarrow as pa

    known = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    found = []
    for name, hint in get_type_hints(kind).items():
        plain = [one for one in get_args(hint) if one is not type(None)] or [hint]
        found.append((name, known[plain[0]]))
    return found


def show(title: str, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a table with the first `SHOWN_MAX` rows on standard output."""
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
