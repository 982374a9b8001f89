"""Ctrl-C ends a job with its exit code alone, whatever py4j logs of it."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

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
        raise RuntimeError("reentrant call inside <_io.BufferedReader name=6>")
    except RuntimeError:
        try:
            raise ConnectionError("while sending or receiving")
        except ConnectionError:
            logging.exception("Exception while sending command.")
    try:
        raise OSError("kept")
    except OSError:
        logging.exception("another error")
"""


def test_ctrl_c_is_no_traceback_of_py4j() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True)
    assert "reentrant" not in done.stderr and "while sending" not in done.stderr
    assert "KeyboardInterrupt" not in done.stderr and "BrokenPipeError" not in done.stderr
    assert "another error" in done.stderr and "OSError: kept" in done.stderr


_WAITING = """
import signal, sys, time
from magnetar.jobs import session as jobs
from magnetar.spark import session as spark
if sys.argv[1] == "nohup":
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
spark.local_session = lambda *_, **__: None
spark.end_session = lambda _: print("ended", flush=True)
with jobs.errors_reported(), jobs.session("audit", 2, "1g"):
    print("began", flush=True)
    time.sleep(1 if sys.argv[1] == "nohup" else 60)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_job_in_order(number: signal.Signals) -> None:
    """SIGTERM and SIGHUP killed it: what it had written beside the topic stayed."""
    with subprocess.Popen(
        [sys.executable, "-c", _WAITING, "plain"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as job:
        assert job.stdout is not None and job.stdout.readline() == b"began\n"
        job.send_signal(number)
        assert job.stdout.read() == b"ended\n"


def test_nohup_is_respected() -> None:
    with subprocess.Popen([sys.executable, "-c", _WAITING, "nohup"], stdout=subprocess.PIPE) as job:
        assert job.stdout is not None and job.stdout.readline() == b"began\n"
        job.send_signal(signal.SIGHUP)
        assert job.stdout.read() == b"ended\n"
    assert job.returncode == 0


_CLEARING = """
import signal, sys, typer
from magnetar.jobs import session as jobs
from magnetar.runtime.command_line import written
from magnetar.spark import session as spark
spark.local_session = lambda *_, **__: None
spark.end_session = lambda _: print("ended", flush=True)

def job():
    with jobs.errors_reported("nothing is half done"), jobs.session("audit", 2, "1g"):
        try:
            if sys.argv[1] == "ended":
                signal.raise_signal(signal.SIGTERM)
        finally:
            raise RuntimeError("what is cached is not given back: the context is gone")

try:
    written(job)
except typer.Exit as ending:
    sys.exit(ending.exit_code)
"""


@pytest.mark.parametrize("ending", ["ended", "failed"])
def test_what_fails_while_an_ended_job_clears_up_is_not_its_end(ending: str) -> None:
    """Spark's context may be gone by then: SIGTERM in the middle of an audit was a traceback of py4j, and 1."""
    words = [sys.executable, "-c", _CLEARING, ending]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.stdout == "ended\n"
    if ending == "ended":
        assert (done.returncode, done.stderr) == (130, "magnetar: interrupted; nothing is half done\n")
    else:
        assert done.returncode == 1 and "RuntimeError: what is cached" in done.stderr
