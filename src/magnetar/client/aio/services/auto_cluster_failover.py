"""A primary cluster, and others for when it is away, with the names of the official Python client."""

from __future__ import annotations

from collections.abc import Sequence

from magnetar.client.aio.services.service_info import ServiceInfo
from magnetar.client.errors import ArgumentError


class AutoClusterFailover:
    """Which clusters a client uses: the primary one, or the first of the others that is there while it is away."""

    def __init__(
        self,
        primary: ServiceInfo,
        secondary: Sequence[ServiceInfo],
        check_interval_ms: int = 5_000,
        failover_threshold: int = 1,
        switch_back_threshold: int = 1,
    ) -> None:
        """Every ``check_interval_ms`` the client looks whether the cluster that it uses answers.

        ``failover_threshold``: after how many failures in a row it moves on; ``switch_back_threshold``: after how many
        answers of the primary in a row it comes back. Raises ArgumentError.
        """
        if not isinstance(primary, ServiceInfo):
            raise ArgumentError(f"primary is a ServiceInfo, and not {type(primary).__name__}")
        if not isinstance(secondary, list | tuple) or not secondary:
            raise ArgumentError("secondary is a list with at least one ServiceInfo")
        for index, one in enumerate(secondary):
            if not isinstance(one, ServiceInfo):
                raise ArgumentError(f"secondary[{index}] is a ServiceInfo, and not {type(one).__name__}")
        for name, number in (
            ("check_interval_ms", check_interval_ms),
            ("failover_threshold", failover_threshold),
            ("switch_back_threshold", switch_back_threshold),
        ):
            if number <= 0:
                raise ArgumentError(f"{name} is above 0, and not {number!r}")
        self.primary = primary
        self.secondary = list(secondary)
        self.check_interval_ms = check_interval_ms
        self.failover_threshold = failover_threshold
        self.switch_back_threshold = switch_back_threshold

    def __repr__(self) -> str:
        return (
            f"AutoClusterFailover(primary={self.primary!r}, secondary={self.secondary!r}, "
            f"check_interval_ms={self.check_interval_ms!r}, failover_threshold={self.failover_threshold!r}, "
            f"switch_back_threshold={self.switch_back_threshold!r})"
        )
