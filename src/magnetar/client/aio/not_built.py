"""Parameters of the official client that this one does not have yet (docs/client.md)."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any, Final

from magnetar.client.errors import NotBuiltError

NOT_BUILT: Final = {"message_listener", "reader_listener"}
"""Of the asyncio client: the blocking one has them."""
_STATS_CACHE_MS: Final = 30_000


def refuse_unknown(other: Mapping[str, Any], where: str, known: Container[str] = ()) -> None:
    """Raise NotBuiltError or TypeError about parameters that are not there, and not ``known``."""
    for name in other:
        if name in known:
            continue
        if name in NOT_BUILT:
            raise NotBuiltError(f"{where}: {name} is not built; docs/client.md says what is")
        raise TypeError(f"{where}() got an unexpected keyword argument {name!r}")


def refuse_stats_cache(milliseconds: int) -> None:
    """Raise NotBuiltError about another time than the usual one: it stands at its official place, and no more."""
    if milliseconds != _STATS_CACHE_MS:
        raise NotBuiltError(
            f"subscribe: broker_consumer_stats_cache_time_ms={milliseconds} is not built: no statistics of the broker "
            f"are kept, Consumer.stats() are the client's own; leave it at {_STATS_CACHE_MS}"
        )
