"""The rows of a query as they are printed: a table on a terminal, lines with tabs elsewhere, JSON, CSV, or a file."""

from __future__ import annotations

import base64
import datetime as dt
import json
import math
import os
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, TextIO

import polars as pl

from magnetar.cli.output.tables import render
from magnetar.cli.output.terminal import Terminal, terminal_of
from magnetar.model.errors import InvalidValueError

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_SLICE: Final = 10_000
"""Rows that are made text at once, and that a terminal gets at most."""


def check_file(path: Path) -> None:
    """Raise InvalidValueError if a file cannot be made, before anything is read."""
    if path.exists():
        raise InvalidValueError(f"--parquet: {path} is there already; name another file, or remove it")
    if not path.parent.is_dir():
        raise InvalidValueError(f"--parquet: there is no directory {path.parent}")


def write_parquet(rows: pl.DataFrame, path: Path) -> None:
    """Write a file that is whole, or not there."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        rows.write_parquet(part)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def show(rows: pl.DataFrame, out: TextIO, *, as_json: bool, as_csv: bool, parquet: Path | None) -> None:
    """Print the rows in the form that is wanted, or as suits what the stream leads to."""
    terminal = terminal_of(out)
    if parquet is not None:
        write_parquet(rows, parquet)
        out.write(f"{rows.height} rows in {parquet}\n")
    elif as_json:
        write_json(rows, out)
    elif as_csv or not terminal.interactive:
        write_lines(rows, out, "," if as_csv else "\t")
    else:
        show_table(rows, out, terminal)


def show_table(rows: pl.DataFrame, out: TextIO, terminal: Terminal) -> None:
    """Print a table for people."""
    render([_plain(row) for row in rows.head(_SLICE).iter_rows(named=True)], "rows", out, terminal)
    if rows.height > _SLICE:
        out.write(f"These are {_SLICE} of {rows.height} rows; --json, --csv and --parquet FILE have all.\n")


def write_lines(rows: pl.DataFrame, out: TextIO, separator: str) -> None:
    """Print a line with the columns' names and one for each row; what has a separator, a quote or a newline is
    quoted."""
    header = True
    for part in _slices(rows):
        columns = [_cells(part[name]) for name in part.columns]
        out.write(pl.DataFrame(columns).write_csv(separator=separator, include_header=header))
        header = False


def write_json(rows: pl.DataFrame, out: TextIO) -> None:
    """Print one object of JSON for each row."""
    for part in _slices(rows):
        for row in part.iter_rows(named=True):
            out.write(json.dumps(_plain(row), ensure_ascii=False) + "\n")


def _slices(rows: pl.DataFrame) -> Iterator[pl.DataFrame]:
    for at in range(0, max(rows.height, 1), _SLICE):
        yield rows.slice(at, _SLICE)


def _cells(column: pl.Series) -> pl.Series:
    """A column that CSV has a form for: numbers as they are, all else as text."""
    if column.dtype.is_numeric() or column.dtype in (pl.String, pl.Boolean):
        return column
    found = [_plain(value) for value in column.to_list()]
    texts = [one if one is None or isinstance(one, str) else json.dumps(one, ensure_ascii=False) for one in found]
    return pl.Series(column.name, texts, dtype=pl.String)


def _plain(value: Any) -> Any:
    """A value as JSON has it: bytes are their text, or base64 if they are none; times are ISO 8601; NaN is a text."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | pl.Series):
        return [_plain(one) for one in value]
    if isinstance(value, bytes):
        try:
            text = value.decode()
        except UnicodeDecodeError:
            text = "\0"
        # ids are bytes that may happen to be text, of characters that no terminal shows
        return base64.b64encode(value).decode() if _CONTROL.search(text) else text
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return str(value) if isinstance(value, dt.timedelta | Decimal) else value
