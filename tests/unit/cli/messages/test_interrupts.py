"""Ctrl-C wherever it finds a command: it ends in order, and a second one ends it at once."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
import typer

import magnetar.aio
from magnetar.cli.messages import interrupts
from magnetar.cli.messages.session import run
from magnetar.contexts.broker_connection import ConnectionFlags
from magnetar.protocol import commands as c
from tests.support.interruptible import interruptible
from tests.support.scripted_broker import Link, scripted_broker

PATIENCE: float = 10.0
"""Seconds after which a child hangs."""
BEFORE = 131
STRIDE = 23
"""Lines from one place that is tried to the next; 1 tries all."""


class Client:
    """Takes some turns of the loop to close, as one that waits for a broker's answers."""

    def __init__(self, *_: object, **__: object) -> None: ...

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(*(turns() for _ in range(3)), return_exceptions=True)


async def turns() -> None:
    for _ in range(3):
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.001):
                await asyncio.get_running_loop().create_future()


def command(waits: Callable[[], None]) -> int:
    async def work(_: object) -> None:
        for _ in range(3):
            await asyncio.sleep(0)
        waits()
        await asyncio.get_running_loop().create_future()

    try:
        run(ConnectionFlags(), work, lambda: print("the end", flush=True))  # noqa: T201
    except typer.Exit as end:
        return end.exit_code
    except KeyboardInterrupt:  # before anything is begun; typer exits with 130 then
        return BEFORE
    return 0


def child(signals: int, place: int) -> None:
    """Send itself the last of the signals at a line of the program; the first of two when it waits."""
    seen = 0

    def line(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal seen
        if event == "line":
            seen += 1
            if seen == place:
                os.write(1, b"sent\n")
                signal.raise_signal(signal.SIGINT)
        return line

    def call(frame: FrameType, event: str, _: Any) -> Any:
        return (
            line if any(one in frame.f_code.co_filename for one in ("/asyncio/", "/magnetar/cli/messages/")) else None
        )

    def waits() -> None:
        if signals == 2:
            sys.settrace(call)
            for frame in frames_of(sys._getframe()):
                frame.f_trace = call(frame, "call", None)
            signal.raise_signal(signal.SIGINT)
        elif seen < place:
            os._exit(0)  # there are no more places

    signal.signal(signal.SIGINT, signal.default_int_handler)
    if signals == 1:
        sys.settrace(call)
    code = command(waits)
    sys.settrace(None)
    os._exit(code)


def frames_of(frame: FrameType | None) -> list[FrameType]:
    found = []
    while frame is not None:
        found.append(frame)
        frame = frame.f_back
    return found


def forked(work: Callable[[], None]) -> tuple[int | None, str]:
    """Return the exit code, None if it hung, and what was printed."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(writing, 1)
        sys.stdout = os.fdopen(1, "w", closefd=False)
        try:
            work()
        finally:
            os._exit(99)
    os.close(writing)
    said = b""
    while select.select([reading], [], [], PATIENCE)[0]:
        piece = os.read(reading, 4096)
        if not piece:
            break
        said += piece
    else:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        return None, said.decode()
    os.close(reading)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said.decode()


@pytest.mark.parametrize("signals", [1, 2])
def test_wherever_a_signal_comes_the_command_ends(signals: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(magnetar.aio, "Client", Client)
    tried = 0
    for place in range(1, 100_000, STRIDE):
        code, said = forked(lambda place=place: child(signals, place))  # type: ignore[misc]
        if "sent" not in said:
            break
        tried += 1
        assert code in (130, BEFORE), (place, said)
        if signals == 1 and code == 130:
            assert said.endswith("the end\n")
    assert tried > 10


def test_a_broker_that_is_silent_is_not_waited_for() -> None:
    """Everything that a client would wait for: the subscription, or the closing of the consumer."""
    asked = threading.Event()

    def subscribed(link: Link) -> None:
        link.greet()
        link.partitions(0)
        link.look_up()
        asked_for = link.expect(c.CommandSubscribe)
        if answers:
            link.send(c.CommandSuccess(asked_for.request_id))
            link.expect(c.CommandFlow)
        asked.set()
        link.until_closed()

    for answers in (False, True):
        asked.clear()
        with scripted_broker(subscribed) as url, interruptible():
            program = [sys.executable, "-m", "magnetar.app.main", "consume", "t", "-s", "s", "--url", url]
            process = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            try:
                assert asked.wait(PATIENCE)
                process.send_signal(signal.SIGINT)
                out, err = process.communicate(timeout=PATIENCE)
            finally:
                process.kill()
                process.wait()
            assert (process.returncode, out) == (130, "0 messages successfully consumed\n"), err
            assert ("the broker does not answer; left without waiting for it" in err) is answers


def test_signals_that_are_ignored_stay_so_and_others_come_back() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interrupts.interrupts():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGINT, before)
    with interrupts.interrupts() as found:
        taken = {signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
        assert taken == {found.on_signal}  # a terminal that is closed ends a command in order, too
    assert signal.getsignal(signal.SIGINT) is before
