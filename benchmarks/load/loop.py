"""Drives any number of connections from one thread until every load says that it is done."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Iterable

from benchmarks.load.connection import Connection

POLL_SECONDS = 0.1
STALL_SECONDS = 10.0
TOTAL_SECONDS = 120.0


class LoadTimeout(Exception):
    """A load did not finish in its time."""


def drive(connections: Iterable[Connection], done: Callable[[], bool], progress: Callable[[], str]) -> None:
    """Receive and flush until ``done``; give up when ``progress`` says the same for too long."""
    poll = select.epoll()
    by_number = {connection.socket.fileno(): connection for connection in connections}
    writing: set[int] = set()
    for number in by_number:
        poll.register(number, select.EPOLLIN)
    started = looked = moved = time.perf_counter()
    last = ""
    try:
        while not done():
            # flush before waiting: handlers only queue, and one connection's receipt may feed another's outbox
            for number, connection in by_number.items():
                if connection.pending:
                    connection.flush()
                if connection.pending and number not in writing:
                    poll.modify(number, select.EPOLLIN | select.EPOLLOUT)
                    writing.add(number)
                elif number in writing and not connection.pending:
                    poll.modify(number, select.EPOLLIN)
                    writing.discard(number)
            for number, events in poll.poll(POLL_SECONDS):
                if events & ~select.EPOLLOUT:
                    by_number[number].receive()
            now = time.perf_counter()
            if now - looked > POLL_SECONDS:
                looked = now
                if (state := progress()) != last:
                    last, moved = state, now
                if now - moved > STALL_SECONDS:
                    raise LoadTimeout(f"no progress for {STALL_SECONDS:.0f} s: {last}")
                if now - started > TOTAL_SECONDS:
                    raise LoadTimeout(f"not finished after {TOTAL_SECONDS:.0f} s: {last}")
    finally:
        poll.close()
