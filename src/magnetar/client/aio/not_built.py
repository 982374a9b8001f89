"""Parameters of the official client that this one does not have yet (docs/client.md)."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any, Final

from magnetar.client.errors import NotBuiltError

NOT_BUILT: Final = {
    "message_listener", "reader_listener",  # of the asyncio client: the blocking one has them
    "lazy_start_partitioned_producers",
    "broker_consumer_stats_cache_time_ms",
}  # fmt: skip


def refuse_unknown(other: Mapping[str, Any], where: str, known: Container[str] = ()) -> None:
    """Raise NotBuiltError or TypeError about parameters that are not there, and not ``known``."""
    for name in other:
        if name in known:
            continue
        if name in NOT_BUILT:
            raise NotBuiltError(f"{where}: {name} is not built; docs/client.md says what is")
        raise TypeError(f"{where}() got an unexpected keyword argument {name!r}")
