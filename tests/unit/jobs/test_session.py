"""Ctrl-C ends a job with its exit code alone, whatever py4j logs of it."""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
import logging
from magnetar.jobs import session as jobs
from magnetar.spark import session as spark
spark.local_session = lambda *_, **__: logging
spark.end_session = lambda _: None

def send():
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        logging.exception("KeyboardInterrupt while sending command.")
        try:
            raise BrokenPipeError
        except BrokenPipeError:
            logging.getLogger("py4j.clientserver").exception("Exception while shutting down a socket")

with jobs.session("audit", 2, "1g"):
    send()
    try:
        raise OSError("kept")
    except OSError:
        logging.exception("another error")
"""


def test_ctrl_c_is_no_traceback_of_py4j() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True)
    assert "KeyboardInterrupt" not in done.stderr and "BrokenPipeError" not in done.stderr
    assert "another error" in done.stderr and "OSError: kept" in done.stderr
