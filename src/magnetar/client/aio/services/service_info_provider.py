"""An application's own say about which cluster a client uses, with the names of the official Python client."""

from __future__ import annotations

from collections.abc import Callable

from magnetar.client.aio.services.service_info import ServiceInfo


class ServiceInfoProvider:
    """Says which cluster a client begins with, and may have it move later; derive from it.

    All methods are called on the client's loop and must not wait.
    """

    def initial_service_info(self) -> ServiceInfo:
        """Return the first cluster; called when the client is made."""
        raise NotImplementedError

    def initialize(self, on_service_info_update: Callable[[ServiceInfo], None]) -> None:
        """Take the function to call, in any thread, with a cluster to move to; called once."""
        raise NotImplementedError

    def close(self) -> None:
        """End what runs in the background; called when the client is closed."""
