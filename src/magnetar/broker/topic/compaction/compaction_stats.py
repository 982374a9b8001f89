"""What is counted of the compaction of one topic."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class CompactionStats:
    """Since the topic was loaded; times in milliseconds since 1970."""

    removed: int = 0
    succeeded_ms: int = 0
    failed_ms: int = 0
    duration_ms: int = 0
    successes: int = 0
    failures: int = 0
    bytes_read: int = 0
    """Of the last run, as what follows."""
    bytes_written: int = 0
    write_latency: tuple[float, ...] = ()
    """How long what it wrote waited for the disk; see :mod:`magnetar.broker.topic.publish.write_stats`."""
