"""``magnetar standalone`` with small numbers that no setting offers: segments of 128 KB, trimming twice a second, space
looked at five times a second.

So that one second of load seals, checkpoints, trims, moves out of and removes segments many times, and kills fall into
all of it.
"""

from __future__ import annotations

from dataclasses import replace

from magnetar.app import main, node
from magnetar.broker.upkeep import periodic_passes
from magnetar.config.settings import Settings
from magnetar.storage.space import extent_mover, segment_cleaner
from magnetar.storage.store_settings import StoreSettings

_store_settings = node.store_settings


def _small(settings: Settings) -> StoreSettings:
    return replace(_store_settings(settings), segment_bytes=1 << 17, cache_bytes=1 << 20)


if __name__ == "__main__":
    node.store_settings = _small
    # Final for the broker, not for this test
    periodic_passes._TRIM_SECONDS = 0.5  # type: ignore[misc]
    periodic_passes._SPACE_SECONDS = 0.2  # type: ignore[misc]
    segment_cleaner._ROUND_SECONDS = 0.1  # type: ignore[misc]
    segment_cleaner._ROLL_SECONDS = 0.2  # type: ignore[misc]
    segment_cleaner._NEWEST_SECONDS = 0.5  # type: ignore[misc]
    # several slices of one small segment are under way when the process is killed
    extent_mover._SLICE_BYTES = 4 << 10  # type: ignore[misc]
    extent_mover._HURRIED_BYTES = 16 << 10  # type: ignore[misc]
    main.main()
