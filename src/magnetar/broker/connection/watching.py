"""WATCH_TOPIC_LIST: the topics of a namespace that match a pattern, and what changes (SEMANTICS 2.19).

Stored topics only, as in Apache Pulsar, whatever scheme the pattern names. A watch holds the names it has told, so each
update carries the hash of the whole list; it ends with WATCH_TOPIC_LIST_CLOSE or its connection.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from magnetar.broker import lookup
from magnetar.broker.connection.session import Session
from magnetar.model.errors import MagnetarError, NotAllowedError, ProtocolError
from magnetar.model.names import NamespaceName
from magnetar.model.topic_pattern import TopicPattern
from magnetar.protocol import commands as c


class TopicListWatch:
    """One watcher of one connection."""

    __slots__ = ("_matches", "_session", "_topics", "_unwatch", "_watcher_id")

    def __init__(
        self, session: Session, watcher_id: int, namespace: NamespaceName, matches: Callable[[str], bool]
    ) -> None:
        self._session = session
        self._watcher_id = watcher_id
        self._matches = matches
        service = session.service
        self._topics = {name for name in service.names_in(namespace) if self._wanted(name)}
        self._unwatch = service.changes.watch(namespace, self._changed)

    def _wanted(self, name: str) -> bool:
        return name.startswith("persistent://") and self._matches(name)

    def told(self, request_id: int, known_hash: str | None) -> c.WatchTopicListSuccess:
        """The answer: the whole list, or nothing but its hash for a client that has it already."""
        digest = lookup.topics_hash(list(self._topics))
        topics = () if digest == known_hash else tuple(sorted(self._topics))
        return c.WatchTopicListSuccess(request_id, self._watcher_id, topics, digest)

    def _changed(self, created: Collection[str], deleted: Collection[str]) -> None:
        new = [name for name in created if name not in self._topics and self._wanted(name)]
        gone = [name for name in deleted if name in self._topics]
        if not new and not gone:
            return
        self._topics.update(new)
        self._topics.difference_update(gone)
        digest = lookup.topics_hash(list(self._topics))
        self._session.send(c.WatchTopicUpdate(self._watcher_id, tuple(new), tuple(gone), digest))

    def close(self) -> None:
        """No more updates."""
        self._unwatch()


def watch_topic_list(session: Session, command: c.WatchTopicList) -> None:
    """WATCH_TOPIC_LIST. A malformed namespace closes the connection; an id in use is answered with its list."""
    try:
        namespace = NamespaceName.parse(command.namespace)
    except MagnetarError as error:
        raise ProtocolError(str(error)) from error
    held = session.watches.get(command.watcher_id)
    if not isinstance(held, TopicListWatch):
        try:
            matches = _pattern(session, command.topics_pattern)
        except MagnetarError as error:
            session.fail(command.request_id, error)
            return
        held = TopicListWatch(session, command.watcher_id, namespace, matches)
        session.watches[command.watcher_id] = held
    session.send(held.told(command.request_id, command.topics_hash))


def _pattern(session: Session, pattern: str) -> Callable[[str], bool]:
    settings = session.service.settings
    if not settings.enableBrokerSideSubscriptionPatternEvaluation:
        raise NotAllowedError("Unable to create topic list watcher: Evaluating subscription patterns is disabled.")
    if len(pattern) > settings.subscriptionPatternMaxLength:
        limit = settings.subscriptionPatternMaxLength
        raise NotAllowedError(f"Unable to create topic list watcher: Pattern longer than maximum: {limit}")
    return TopicPattern(pattern).matches


def close_watch(session: Session, command: c.WatchTopicListClose) -> None:
    """WATCH_TOPIC_LIST_CLOSE: SUCCESS, also for an unknown id (1.3.17)."""
    held = session.watches.pop(command.watcher_id, None)
    if held is not None:
        held.close()
    session.send(c.Success(command.request_id))
