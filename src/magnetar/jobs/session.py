"""The Spark session of a job: a local one of its own, or the one that spark-submit made; and how errors are
reported."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from magnetar.model.errors import MagnetarError
from magnetar.runtime.command_line import complain, interruption_said

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CLEAN, FOUND, FAILED = 0, 1, 2
"""Exit codes: nothing wrong, something found, the job could not do its work."""


@contextmanager
def session(name: str, cores: int, memory: str) -> Iterator[SparkSession]:
    """Give a session, stopped at the end; under spark-submit ``cores`` and ``memory`` are not used."""
    for logger in (None, "py4j.clientserver", "py4j.java_gateway"):
        logging.getLogger(logger).addFilter(_is_no_ctrl_c)
    from magnetar.spark import register
    from magnetar.spark.session import SETTINGS, ctrl_c_kept, end_session, local_session

    if "PYSPARK_GATEWAY_PORT" in os.environ:
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.appName(f"magnetar {name}")
        for key, value in SETTINGS.items():
            if not key.startswith(("spark.driver.", "spark.ui.")):
                builder = builder.config(key, value)
        with ctrl_c_kept():
            spark = builder.getOrCreate()
        register(spark)
        try:
            with _ended_by_ctrl_c_alone():
                yield spark
        finally:
            spark.stop()
        return
    spark = local_session(f"magnetar {name}", cores=cores, memory=memory, brief=True)
    try:
        with _ended_by_ctrl_c_alone():
            yield spark
    finally:
        end_session(spark)


@contextmanager
def _ended_by_ctrl_c_alone() -> Iterator[None]:
    """Have Ctrl-C be the end of a job also where its clearing up fails for that, as what is cached of Spark does."""
    try:
        yield
    except Exception as error:
        if _is_of_ctrl_c(error):
            raise KeyboardInterrupt from None
        raise


def _is_no_ctrl_c(record: logging.LogRecord) -> bool:
    """Whether a record is about something else than Ctrl-C: py4j logs its traceback, and those of what it broke off."""
    return not _is_of_ctrl_c(record.exc_info[1] if record.exc_info else None)


def _is_of_ctrl_c(error: BaseException | None) -> bool:
    while error is not None:
        # pyspark's handler, which is there while a session starts, asks Java although an answer is half read
        if isinstance(error, KeyboardInterrupt) or str(error).startswith("reentrant call inside"):
            return True
        error = error.__context__
    return False


@contextmanager
def errors_reported(interrupted: str = "nothing was changed") -> Iterator[None]:
    """Turn errors into one sentence on standard error and exit code `FAILED`.

    SIGTERM and SIGHUP end a job in order, as Ctrl-C does: files that nothing will name are deleted, and the sentence
    says what is left, ``interrupted``.
    """
    with interruption_said(interrupted):
        try:
            yield
        except (MagnetarError, OSError) as error:
            raise _failed(error) from None
        except Exception as error:
            cause = _cause(error)
            if cause is None:
                raise
            raise _failed(cause) from None


def _failed(text: object) -> typer.Exit:
    complain(text)
    return typer.Exit(FAILED)


def _cause(error: Exception) -> str | None:
    """Return the text of an error that a task of ours raised, out of Spark's report; None if it was another error."""
    from pyspark.errors import PySparkException

    if not isinstance(error, PySparkException):
        return None
    found: list[Any] = [line for line in str(error).splitlines() if line.startswith("magnetar.") and "Error: " in line]
    return found[-1].partition("Error: ")[2] if found else None
