"""The log: one line per event, and a bounded number of warnings of a kind."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Iterator

import pytest

from magnetar.runtime.log import RateLimitedLog, set_up


class HandClock:
    def __init__(self) -> None:
        self.ms = 1_000_000

    def now_ms(self) -> int:
        return self.ms


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    stream = io.StringIO()
    set_up("INFO", stream)
    yield stream
    logging.captureWarnings(False)
    root.handlers[:] = before
    root.setLevel(level)


def test_one_line_per_event(stream: io.StringIO) -> None:
    logging.getLogger("magnetar.broker.session").warning("bad name %r from\n%s", "a\nb", "127.0.0.1")
    logging.getLogger("magnetar.broker.session").debug("not shown")
    line = stream.getvalue()
    assert line.count("\n") == 1
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z WARN broker\.session bad name 'a\\nb' from\\n127\.0\.0\.1\n", line
    )


HARMFUL = "".join(map(chr, (*range(0x20), *range(0x7F, 0xA0), 0x61C, 0x200E, 0x200F, 0x2028, 0x2029, 0x202E, 0x2066)))


def test_no_control_character_reaches_the_log(stream: io.StringIO) -> None:
    """A name of a topic may hold all of them, and the log is read in terminals."""
    logger = logging.getLogger("magnetar.x")
    logger.warning("topic %s refused", f"a{HARMFUL}b\x1b[2J Grüße 東京")
    try:
        raise ValueError(HARMFUL)
    except ValueError:
        logger.exception("failed")
    lines = stream.getvalue().split("\n")
    assert not set(HARMFUL) & set("".join(lines))
    assert re.fullmatch(
        r"\S+Z WARN x topic a\\x00\\x01.*\\t\\n.*\\r.*\\x1b.*\\x7f\\x80.*\\u2028.*b\\x1b\[2J Grüße 東京 refused",
        lines[0],
    )
    assert lines[-2].startswith("    \\x0b") and lines[-1] == "", "the trace keeps its own line breaks"


def test_a_terminal_gets_none_either(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    try:
        set_up("INFO")
        logging.getLogger("magnetar.x").warning("a%sb", HARMFUL)
    finally:
        logging.captureWarnings(False)
        root.handlers[:] = before
        root.setLevel(level)
    shown = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().err)
    assert not set(HARMFUL.replace("\n", "")) & set(shown)
    assert "\\x1b" in shown


def test_trace_is_indented(stream: io.StringIO) -> None:
    try:
        raise ValueError("x")
    except ValueError:
        logging.getLogger("magnetar.x").exception("failed")
    lines = stream.getvalue().splitlines()
    assert lines[0].endswith("ERROR x failed")
    assert all(line.startswith("    ") for line in lines[1:])
    assert lines[-1] == "    ValueError: x"


def test_repeated_faults_are_held_back_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    clock = HandClock()
    limited = RateLimitedLog(logging.getLogger("t"), burst=2, window_ms=1000, clock=clock)
    for number in range(10):
        limited.warning("bad checksum", "bad checksum %d", number)
    limited.warning("other", "other fault")
    assert [record.getMessage() for record in caplog.records] == ["bad checksum 0", "bad checksum 1", "other fault"]
    clock.ms += 1000
    limited.warning("bad checksum", "bad checksum %d", 10)
    limited.warning("bad checksum", "bad checksum %d", 11)
    limited.warning("bad checksum", "bad checksum %d", 12)
    assert [record.getMessage() for record in caplog.records[3:]] == [
        "bad checksum 10 (8 more of this kind since the last such line)",
        "bad checksum 11",
    ]


def test_kinds_made_up_by_clients_are_bounded() -> None:
    logger = logging.getLogger("silent")
    logger.disabled = True
    limited = RateLimitedLog(logger, clock=HandClock())
    for number in range(5000):
        limited.warning(f"kind {number}", "x")
    assert len(limited._kinds) <= 1024
