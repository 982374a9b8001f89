"""A magnetar broker per profile of the oracle's probes, as a child process on ports of its own choosing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from tools.oracle import brokers
from tools.servers.process import Server

Address = Callable[[str], Server]


@pytest.fixture(scope="session")
def address() -> Iterator[Address]:
    """The broker of a profile, started when it is first asked for and stopped with the session."""
    running: dict[str, Server] = {}
    with ExitStack() as stack:

        def of(profile: str) -> Server:
            if profile not in running:
                running[profile] = stack.enter_context(brokers.running("magnetar", profile))
            return running[profile]

        yield of
