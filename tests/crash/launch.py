"""``magnetar standalone`` with small numbers that no setting offers: segments of 1 MB, trimming twice a second.

So that one second of load seals, checkpoints, trims and removes segments many times, and kills fall into all of it.
"""

from __future__ import annotations

from dataclasses import replace

from magnetar.app import main, node
from magnetar.broker import upkeep
from magnetar.runtime.settings import Settings
from magnetar.storage.store import StoreSettings

_store_settings = node.store_settings


def _small(settings: Settings) -> StoreSettings:
    return replace(_store_settings(settings), segment_bytes=1 << 20, cache_bytes=1 << 20)


if __name__ == "__main__":
    node.store_settings = _small
    upkeep._TRIM_SECONDS = 0.5  # type: ignore[misc]  # Final for the broker, not for this test
    main.main()
