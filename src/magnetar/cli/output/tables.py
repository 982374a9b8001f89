"""Lists, maps and statistics as tables of Rich. Names in them are strangers': they are escaped and never markup."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from magnetar.cli.output.figures import age_in_words, bar, count_in_words, rate_in_words, size_in_words
from magnetar.cli.output.terminal import Terminal
from magnetar.runtime.harmless_text import one_line

_CELL_MAX: Final = 400
_ROWS_MAX: Final = 10_000


def render(value: Any, title: str, out: TextIO, terminal: Terminal) -> None:
    """Print an answer as one table or several; what is no object and no list is printed as a line."""
    console = Console(
        file=out, width=terminal.columns, no_color=not terminal.color, color_system="auto" if terminal.color else None,
        force_terminal=terminal.color, highlight=False, emoji=False, markup=False,
    )  # fmt: skip
    if isinstance(value, dict) and "subscriptions" in value and "msgRateIn" in value:
        for table in stats_tables(value):
            console.print(table)
    elif isinstance(value, dict) and value:
        console.print(_object(value))
    elif isinstance(value, list) and value:
        console.print(_list(value))
        console.print(Text(f"{len(value)} in all", style="dim"))
    elif isinstance(value, dict | list):
        console.print(Text(f"{title}: none", style="dim"))
    else:
        console.print(cell(value))


def cell(value: Any) -> Text:
    """Return a value as one cell: short, escaped, without markup."""
    if value is None:
        return Text("-", style="dim")
    if isinstance(value, bool):
        return Text("yes" if value else "no", style="green" if value else "dim")
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    shown = one_line(text)
    return Text(shown if len(shown) <= _CELL_MAX else shown[:_CELL_MAX] + "…", overflow="fold")


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _object(value: Mapping[str, Any]) -> Table:
    table = _table("key", "value")
    for key, one in _flat(value):
        table.add_row(cell(key), cell(one))
    return table


def _flat(value: Mapping[str, Any], before: str = "") -> Iterable[tuple[str, Any]]:
    """Members of members as ``outer.inner``."""
    for key, one in value.items():
        if isinstance(one, dict) and one:
            yield from _flat(one, f"{before}{key}.")
        else:
            yield f"{before}{key}", one


def _list(values: list[Any]) -> Table:
    shown = values[:_ROWS_MAX]
    if not all(isinstance(one, dict) for one in shown):
        table = _table("name" if all(isinstance(one, str) for one in shown) else "value")
        for one in shown:
            table.add_row(cell(one))
        return table
    columns = list(dict.fromkeys(key for one in shown for key in one))
    table = _table(*(one_line(column) for column in columns))
    for one in shown:
        table.add_row(*(cell(one.get(column)) for column in columns))
    return table


def stats_tables(stats: Mapping[str, Any]) -> list[Table]:
    """Return a topic's statistics: rates and sizes, then its subscriptions with bars, then its producers."""
    tables = [_rates(stats)]
    subscriptions = stats.get("subscriptions")
    if isinstance(subscriptions, dict) and subscriptions:
        tables.append(_subscriptions(subscriptions))
    publishers = stats.get("publishers")
    if isinstance(publishers, list) and publishers:
        tables.append(_publishers(publishers))
    return tables


def _rates(stats: Mapping[str, Any]) -> Table:
    table = _table("topic", "")
    for name, text in (
        ("in", f"{rate_in_words(_number(stats, 'msgRateIn'))}, "
               f"{rate_in_words(_number(stats, 'msgThroughputIn'), 'B')}"),
        ("out", f"{rate_in_words(_number(stats, 'msgRateOut'))}, "
                f"{rate_in_words(_number(stats, 'msgThroughputOut'), 'B')}"),
        ("stored", size_in_words(_number(stats, "storageSize"))),
        ("backlog", size_in_words(_number(stats, "backlogSize"))),
        ("received", f"{count_in_words(_number(stats, 'msgInCounter'))} messages, "
                     f"{size_in_words(_number(stats, 'bytesInCounter'))}"),
        ("average message", size_in_words(_number(stats, "averageMsgSize"))),
        ("deduplication", str(stats.get("deduplicationStatus", "-"))),
    ):  # fmt: skip
        table.add_row(Text(name), cell(text))
    return table


def _subscriptions(found: Mapping[str, Any]) -> Table:
    table = _table("subscription", "type", "backlog", "", "unacked", "out", "consumers", "oldest")
    rows = {name: one for name, one in list(found.items())[:_ROWS_MAX] if isinstance(one, dict)}
    largest = max((_number(one, "msgBacklog") for one in rows.values()), default=0)
    for name, one in rows.items():
        backlog = _number(one, "msgBacklog")
        table.add_row(
            cell(name),
            cell(one.get("type") or "-"),
            cell(count_in_words(backlog)),
            Text(bar(backlog, largest), style="yellow"),
            cell(count_in_words(_number(one, "unackedMessages"))),
            cell(rate_in_words(_number(one, "msgRateOut"))),
            cell(str(len(one.get("consumers") or []))),
            cell(_oldest(one)),
        )
    return table


def _oldest(subscription: Mapping[str, Any]) -> str:
    age = _number(subscription, "oldestBacklogMessageAgeSeconds", -1)
    return age_in_words(age)


def _publishers(found: list[Any]) -> Table:
    table = _table("producer", "in", "average", "address")
    for one in found[:_ROWS_MAX]:
        if isinstance(one, dict):
            table.add_row(
                cell(one.get("producerName")),
                cell(rate_in_words(_number(one, "msgRateIn"))),
                cell(size_in_words(_number(one, "averageMsgSize"))),
                cell(one.get("address")),
            )
    return table


def _number(found: Mapping[str, Any], key: str, default: float = 0) -> float:
    value = found.get(key, default)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else default
