"""Notifies watchers of a namespace of the persistent topics that are created and deleted (rule 2.19).

Whatever makes or deletes a topic (a client's first use, REST, growth, collection) passes
:class:`magnetar.broker.service.BrokerService`, which reports it here. Changes are gathered for a moment and sent
together, so a thousand new partitions are a few updates; a topic that came and went within that moment is in none.
One turn of the loop notifies a few watchers, however many there are; the next changes follow when all were notified of
the last. Without watchers a report is one dictionary look-up.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Collection
from functools import partial
from typing import Final

from magnetar.model.names import NamespaceName, TopicName

log = logging.getLogger(__name__)

GATHER_SECONDS: Final = 0.1
JOBS_PER_TURN: Final = 4

Listener = Callable[[Collection[str], Collection[str]], None]
"""Called with full names that are new and full names that are gone; none is in both."""


class TopicChanges:
    """The changes of one broker's topics; lives on the event loop."""

    def __init__(self) -> None:
        self._listeners: dict[NamespaceName, list[Listener]] = {}
        self._changed: dict[NamespaceName, dict[str, bool]] = {}
        """Whether a topic exists now, by full name; only those that differ from what was notified."""
        self._timer: asyncio.TimerHandle | None = None
        self._jobs: deque[Callable[[], None]] = deque()
        """The notifications that are still to be sent, in that order."""

    def watch(self, namespace: NamespaceName, listener: Listener) -> Callable[[], None]:
        """Notify ``listener`` from now on, until the result is called.

        Changes that are being gathered are for those who watch already: the new one knows them.
        """
        self._tell_now()
        self._listeners.setdefault(namespace, []).append(listener)

        def unwatch() -> None:
            listeners = self._listeners.get(namespace, [])
            if listener in listeners:
                listeners.remove(listener)
            if not listeners:
                self._listeners.pop(namespace, None)
                self._changed.pop(namespace, None)

        return unwatch

    def created(self, name: TopicName) -> None:
        """A topic was created."""
        if self._listeners:
            self._note(name, there=True)

    def deleted(self, name: TopicName) -> None:
        """A topic was deleted."""
        if self._listeners:
            self._note(name, there=False)

    def _note(self, name: TopicName, *, there: bool) -> None:
        if name.namespace not in self._listeners:
            return
        changed = self._changed.setdefault(name.namespace, {})
        if changed.get(name.fqn) is (not there):
            del changed[name.fqn]
        else:
            changed[name.fqn] = there
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(GATHER_SECONDS, self._tell)

    def soon(self, job: Callable[[], None]) -> None:
        """Do ``job``, a millisecond's work at most, after those given before; few in one turn of the loop."""
        if not self._jobs:
            asyncio.get_running_loop().call_soon(self._work)
        self._jobs.append(job)

    def _work(self) -> None:
        for _ in range(min(JOBS_PER_TURN, len(self._jobs))):
            try:
                self._jobs[0]()
            except Exception:
                log.exception("a watcher of topics failed")
            self._jobs.popleft()
        if self._jobs:
            asyncio.get_running_loop().call_soon(self._work)

    def _tell(self) -> None:
        self._timer = None
        if self._jobs:
            # the last watchers would fall further and further behind
            self._timer = asyncio.get_running_loop().call_later(GATHER_SECONDS, self._tell)
        else:
            self._tell_now()

    def _tell_now(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        changes, self._changed = self._changed, {}
        for namespace, changed in changes.items():
            new = [name for name, there in changed.items() if there]
            gone = [name for name, there in changed.items() if not there]
            if not changed:
                continue
            for listener in self._listeners.get(namespace, ()):
                self.soon(partial(self._hear, namespace, listener, new, gone))

    def _hear(self, namespace: NamespaceName, listener: Listener, new: list[str], gone: list[str]) -> None:
        if listener in self._listeners.get(namespace, ()):
            listener(new, gone)
