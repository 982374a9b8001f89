"""WATCH_TOPIC_LIST: the topics of a namespace that match a pattern, and what changes (rule 2.19).

Only persistent topics are listed, as in Apache Pulsar, whatever scheme the pattern names. Watches with the same pattern
share one list (:mod:`magnetar.broker.namespaces.watched_lists`), so each update carries the hash of all of it; a watch
ends with WATCH_TOPIC_LIST_CLOSE or its connection.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from magnetar.broker.connection.handlers.guarded_commands import still_allowed
from magnetar.broker.connection.handlers.topic_list_answer import put_list
from magnetar.broker.connection.session import Session
from magnetar.broker.namespaces.watched_lists import WatchedList
from magnetar.model.errors import MagnetarError, NotAllowedError, ProtocolError
from magnetar.model.names import NamespaceName
from magnetar.model.topic_pattern import TopicPattern
from magnetar.protocol import commands as c
from magnetar.protocol.handmade_frames import topic_lists


class TopicListWatch:
    """One watcher of one connection."""

    __slots__ = ("_early", "_session", "_watcher_id", "namespace", "watched")

    def __init__(self, session: Session, watcher_id: int, namespace: NamespaceName, watched: WatchedList) -> None:
        self.namespace = namespace
        self._session = session
        self._watcher_id = watcher_id
        self.watched = watched
        self._early: list[c.CommandWatchTopicUpdate] | None = []
        """Updates that came before the list was sent."""
        watched.watchers.append(self._changed)

    def _changed(self, new: Sequence[str], gone: Sequence[str], digest: str) -> None:
        update = c.CommandWatchTopicUpdate(self._watcher_id, tuple(new), tuple(gone), digest)
        if self._early is None:
            self._session.send(update)
        else:
            self._early.append(update)

    def answered(self) -> None:
        """The client has the list that the watch began with."""
        early, self._early = self._early or [], None
        for update in early:
            self._session.send(update)

    def close(self) -> None:
        """No more updates."""
        self._session.service.watched_lists.leave(self.watched, self._changed)


def watch_topic_list(session: Session, command: c.CommandWatchTopicList) -> Iterator[int]:
    """Handle WATCH_TOPIC_LIST. A malformed namespace closes the connection; an id in use is answered with its list."""
    try:
        namespace = NamespaceName.parse(command.namespace)
    except MagnetarError as error:
        raise ProtocolError(str(error)) from error
    held = session.watches.get(command.watcher_id)
    if not isinstance(held, TopicListWatch):
        try:
            pattern = _pattern(session, command.topics_pattern)
        except MagnetarError as error:
            session.fail(command.request_id, error)
            return
        # a look at a name takes about one unit
        watched = yield from session.service.watched_lists.watching(namespace, pattern)
        held = TopicListWatch(session, command.watcher_id, namespace, watched)
        if not still_allowed(session, command):
            held.close()
            return
        session.watches[command.watcher_id] = held
    names = held.watched.names
    digest = names.digest()
    pieces = [] if digest == command.topics_hash else names.pieces()
    frame = topic_lists.watch_topic_list_success(command.request_id, command.watcher_id, pieces, digest)
    if (yield from put_list(session, command.request_id, frame)):
        held.answered()
    else:
        session.watches.pop(command.watcher_id, None)  # a change of grants may have closed it
        held.close()


def _pattern(session: Session, pattern: str) -> TopicPattern:
    settings = session.service.settings
    if not settings.enableBrokerSideSubscriptionPatternEvaluation:
        raise NotAllowedError("Unable to create topic list watcher: Evaluating subscription patterns is disabled.")
    if len(pattern) > settings.subscriptionPatternMaxLength:
        limit = settings.subscriptionPatternMaxLength
        raise NotAllowedError(f"Unable to create topic list watcher: Pattern longer than maximum: {limit}")
    return TopicPattern(pattern)


def close_watch(session: Session, command: c.CommandWatchTopicListClose) -> None:
    """Answer WATCH_TOPIC_LIST_CLOSE with SUCCESS, also for an unknown id (rule 1.3.17)."""
    held = session.watches.pop(command.watcher_id, None)
    if held is not None:
        held.close()
    session.send(c.CommandSuccess(command.request_id))
