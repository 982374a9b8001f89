"""Watching which topics of a namespace match a pattern (rule 2.19)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CommandWatchTopicList:
    """``topics_hash`` comes from a client that reconnects and knows a list already."""

    request_id: int
    watcher_id: int
    namespace: str
    topics_pattern: str
    topics_hash: str | None = None


@dataclass(frozen=True, slots=True)
class CommandWatchTopicListSuccess:
    request_id: int
    watcher_id: int
    topics: tuple[str, ...]
    topics_hash: str


@dataclass(frozen=True, slots=True)
class CommandWatchTopicUpdate:
    watcher_id: int
    new_topics: tuple[str, ...]
    deleted_topics: tuple[str, ...]
    topics_hash: str


@dataclass(frozen=True, slots=True)
class CommandWatchTopicListClose:
    request_id: int
    watcher_id: int
