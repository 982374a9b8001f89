"""The output of jobs: a table on the terminal for people, a JSON or Parquet file for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, get_args, get_type_hints

from magnetar.model.errors import InvalidValueError

SHOWN_MAX: Final = 100
"""Rows of a table on the terminal; files have all."""
_UNBOUNDED: Final = 100_000
"""Columns of output that is no terminal: what reads it has no edge to break lines at."""


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
    """Print the first `SHOWN_MAX` rows on standard output: as a table, or on a terminal that it does not fit as a block
    of lines for each row.

    Names and contents in them are strangers': they are one line each and never markup.
    """
    from rich.console import Console

    from magnetar.runtime.harmless_text import one_line  # no page of help needs it

    listed = list(rows)
    shown = [["" if value is None else one_line(str(value)) for value in row] for row in listed[:SHOWN_MAX]]
    console = Console(markup=False, highlight=False, emoji=False)
    table = _table(names, shown)
    wide = console.measure(table, options=console.options.update(max_width=_UNBOUNDED)).maximum
    console.print(one_line(title), soft_wrap=True)
    if console.is_terminal and wide > console.width:
        for line in _blocks(names, shown):
            console.print(line, soft_wrap=True)
    else:
        console.width = max(console.width, wide)
        console.print(table)
    if len(listed) > SHOWN_MAX:
        console.print(f"… and {len(listed) - SHOWN_MAX} more; --out FILE has all of them")


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for name in names:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(Text(value) for value in row))
    return table


def _blocks(names: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    width = max(map(len, names), default=0)
    for row in rows:
        yield ""
        yield from (f"{name:{width}}  {value}" for name, value in zip(names, row, strict=True) if value)
