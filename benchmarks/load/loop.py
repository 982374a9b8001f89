"""Drives any number of connections from one thread until every load says that it is done."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Iterable

from benchmarks.load.connection import Connection


class LoadTimeout(Exception):
    """A load did not finish in its time."""


def drive(
    connections: Iterable[Connection], done: Callable[[], bool], seconds_max: float, say: Callable[[], str]
) -> None:
    """Receive and flush until ``done``; ``say`` tells how far it came if the time runs out."""
    poll = select.epoll()
    by_number = {connection.socket.fileno(): connection for connection in connections}
    writing: set[int] = set()
    for number in by_number:
        poll.register(number, select.EPOLLIN)
    limit = time.perf_counter() + seconds_max
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
            for number, events in poll.poll(0.5):
                if events & ~select.EPOLLOUT:
                    by_number[number].receive()
            if time.perf_counter() > limit:
                raise LoadTimeout(f"not finished after {seconds_max:.0f} s: {say()}")
    finally:
        poll.close()
