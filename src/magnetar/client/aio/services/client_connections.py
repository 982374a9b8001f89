"""The connections of one client, the questions it asks over them, and the cluster that they lead to."""

from __future__ import annotations

import random
from contextlib import suppress

from magnetar.client.aio.connections.connection_pool import ConnectionPool, Dial
from magnetar.client.aio.connections.topic_lookup import TopicLookup
from magnetar.client.aio.services.service_switch import ServiceSwitch
from magnetar.client.errors import ForkedClientError
from magnetar.client.machines.handle_life import Backoff
from magnetar.model.errors import InvalidValueError


class ClientConnections:
    """Made with the client, closed with it."""

    def __init__(
        self,
        switch: ServiceSwitch,
        rng: random.Random,
        *,
        timeout: float,
        connect_timeout_ms: float,
        keep_alive: float,
        backoff_ms: tuple[float, float],
        per_broker: int,
        listener: str | None,
        dial: Dial | None,
    ) -> None:
        """``backoff_ms``: the first and the longest pause between attempts. Raises InvalidValueError."""
        if min(per_broker, timeout, connect_timeout_ms, keep_alive) <= 0:
            raise InvalidValueError("connections_per_broker, time-outs and keep_alive_interval_seconds are above 0")
        first, longest = backoff_ms
        if not 0 < first <= longest:
            raise InvalidValueError("initial_backoff_interval_ms is above 0 and not above max_backoff_interval_ms")
        self.switch = switch
        self.timeout = timeout
        """Seconds that an operation may take."""
        self.pool = switch.pool = ConnectionPool(
            switch.service, timeout=timeout, connect_timeout=connect_timeout_ms / 1000, keep_alive=keep_alive,
            per_broker=per_broker, dial=dial,
        )  # fmt: skip
        self.lookup = TopicLookup(self.pool, rng, timeout, listener, Backoff(first / 1000, longest / 1000))
        with suppress(RuntimeError):  # without a running loop it begins with what is opened first
            switch.begin()

    def forked(self, error: ForkedClientError) -> None:
        """Refuse everything in a process that was forked off."""
        self.pool.forked(error)

    def close(self) -> None:
        """Move nowhere any more, and close all connections."""
        self.switch.close()
        self.pool.close()
