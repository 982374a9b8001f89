"""Clients that talk to the broker of a test from the same process and have the machine's clock, which no test moves."""

from __future__ import annotations

import warnings

from magnetar.client.aio.client_life import open_clients
from magnetar.runtime.clock import Clock


class ForeignClockWarning(UserWarning):
    """Time is moved, and an open client of the broker does not follow: its time-outs and delays stay real."""


def warn_of_foreign_clocks(service_url: str, clock: Clock, level: int) -> None:
    """Warn once for each place that moves the time, if a client there has another clock than ``clock``.

    ``level`` is how many calls above this one the place is. Only clients of magnetar in this process are seen.
    """
    strangers = [client for client in open_clients(service_url) if client.clock is not clock]
    if strangers:
        warnings.warn(
            f"{len(strangers)} open client(s) of {service_url} have a clock of their own, which does not move: "
            "negative acknowledgements, acknowledgement time-outs and delays of theirs take their real time. Make them "
            "with broker.client() or broker.aio_client() (fixtures pulsar_client, pulsar_aio_client)",
            ForeignClockWarning,
            stacklevel=level + 1,
        )
