"""A query: the statement's tables are found, and the engine runs it in a thread, so that signals are heard at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import polars as pl
from polars.exceptions import PolarsError

from magnetar.cli.messages.interrupts import Interrupts
from magnetar.cli.output.first_trouble import first_trouble_said
from magnetar.cli.output.waiting_line import WaitingLine
from magnetar.cli.sql.engine_thread import start_engine
from magnetar.cli.sql.read_bounds import ReadBounds
from magnetar.cli.sql.statement import (
    TABLES_MAX,
    StatementError,
    check_plan,
    hint,
    metadata_columns,
    topic_of,
    unknown_table,
)
from magnetar.cli.sql.topic_table import KNOWN, TopicTable, place
from magnetar.client.lookup import log
from magnetar.model.errors import InvalidValueError
from magnetar.spark.options.source_options import SourceOptions

_TURN: Final = 0.2


@dataclass(kw_only=True)
class Query:
    """One statement over topics."""

    text: str
    options: SourceOptions
    bounds: ReadBounds
    start: str = "earliest"
    end: str = "latest"

    def run(self, signals: Interrupts) -> pl.DataFrame | None:
        """Return the rows, None if a signal came before; says how far it is on a terminal's standard error.

        Raises MagnetarError. Reads that go on after a signal end with the process, and leave no files.
        """
        outcome: list[Any] = []
        done = threading.Event()

        def work() -> None:
            try:
                outcome.append(self._rows())
            except BaseException as error:  # of another thread: it is raised in the one that waits
                outcome.append(error)
            finally:
                done.set()

        with WaitingLine("reading") as line, first_trouble_said(log, line.say):
            start_engine(work)
            while not done.wait(_TURN):
                if signals.heard:
                    return None
                self.bounds.check_time()
                self.bounds.check_memory()
                line.turn(self.bounds.progress())
        if isinstance(outcome[0], KeyboardInterrupt) or signals.heard:
            return None
        if isinstance(outcome[0], BaseException):
            raise outcome[0]
        found: pl.DataFrame = outcome[0]
        return found

    def _rows(self) -> pl.DataFrame:
        start, end = place(self.start), place(self.end)
        columns = metadata_columns(self.text, KNOWN)

        def table(name: str) -> pl.LazyFrame:
            return TopicTable(topic_of(name), self.options, columns, self.bounds, start, end).frame()

        try:
            planned = _planned(self.text, table)
            check_plan(planned.explain(optimized=False))
        except PolarsError as error:
            raise self.bounds.failure or StatementError(_explained(error)) from error
        try:
            return planned.collect(engine="streaming")
        except PolarsError as error:
            raise self.bounds.failure or InvalidValueError(_explained(error)) from error


def _planned(text: str, table: Callable[[str], pl.LazyFrame]) -> pl.LazyFrame:
    """Return the plan of a statement whose tables are made as the engine asks for them."""
    context = pl.SQLContext()
    known: set[str] = set()
    while True:
        try:
            plan = context.execute(text)
            plan.collect_schema()  # names are resolved no earlier
            return plan
        except PolarsError as error:
            name = unknown_table(str(error))
            if name is None or name in known:
                raise
            if len(known) >= TABLES_MAX:
                raise StatementError(f"the query reads more than {TABLES_MAX} topics") from None
            known.add(name)
            context.register(name, table(name))


def _explained(error: PolarsError) -> str:
    text = str(error)
    return f"{text.partition(chr(10) + chr(10) + 'Resolved plan')[0]}{hint(text)}"
