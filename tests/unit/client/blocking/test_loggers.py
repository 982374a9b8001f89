"""What a client is given for its log lines is let go with the client."""

from __future__ import annotations

import gc
import logging
from pathlib import Path

import pytest

import magnetar
from magnetar.client.errors import ArgumentError


def test_a_client_that_was_dropped_prints_no_more(tmp_path: Path) -> None:
    """Each one left its handler, so that every line came as often as clients had been made."""
    ours = logging.getLogger("magnetar.client")
    before = list(ours.handlers)
    for _ in range(3):
        client = magnetar.Client(
            "pulsar://127.0.0.1:1", logger=magnetar.FileLogger(magnetar.LoggerLevel.Info, str(tmp_path / "log"))
        )
        assert len(ours.handlers) == len(before) + 1
        del client
        gc.collect()
        assert ours.handlers == before


def test_the_file_of_a_logger_is_a_path() -> None:
    with pytest.raises(ArgumentError, match="log_file is the path"):
        magnetar.FileLogger(magnetar.LoggerLevel.Info, 5)  # type: ignore[arg-type]
