"""The end of a topic's log: nothing is published after it, for ever (rule 4.7.1).

That the topic is terminated is a property of its log, durable with the answer. Entries that producers had under way are
before it in the journal: the last message id is known when the property is durable, and becomes its value, because the
ledger that it names may be trimmed, or void after a restart if it is empty.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from magnetar.broker.topic.publish.producers import Producers
from magnetar.broker.topic.subscription.subscriptions import Subscriptions
from magnetar.model.errors import PersistenceError, TopicTerminatedError
from magnetar.model.ids import Position
from magnetar.storage.ledgers.managed_ledger import ManagedLedger

PROPERTY: Final = "magnetar.terminated"

Failed = Callable[[PersistenceError], None]


class Termination:
    """Whether the topic has ended; made with it."""

    def __init__(self, log: ManagedLedger, producers: Producers, subscriptions: Subscriptions) -> None:
        self._log = log
        self._producers = producers
        self._subscriptions = subscriptions
        # a text is what users of older versions wrote under that name
        subscriptions.terminated = subscriptions.ended = not isinstance(log.properties.get(PROPERTY), str | None)

    @property
    def terminated(self) -> bool:
        """Whether nothing more is published."""
        return self._subscriptions.terminated

    @property
    def last(self) -> Position:
        """The position of the last message; entry -1 of the ledger that was open if there was none (rule 4.7.1)."""
        known = self._log.properties.get(PROPERTY)
        return Position(*known) if isinstance(known, list) else self._log.position(self._log.end - 1)

    def check_producer(self) -> None:
        """Raises TopicTerminatedError."""
        if self.terminated:
            raise TopicTerminatedError(
                "org.apache.pulsar.broker.service.BrokerServiceException$TopicTerminatedException: "
                "Topic was already terminated"
            )

    def terminate(self, done: Callable[[], None], failed: Failed) -> None:
        """Let the producers go and write the end; ``done`` when it is durable. Again: nothing but ``done``."""
        log, subscriptions = self._log, self._subscriptions
        if not self.terminated:
            subscriptions.terminated = True
            self._producers.close_all()
            log.properties = {**log.properties, PROPERTY: True}
            log.write_birth()

        def written() -> None:
            subscriptions.ended = True
            for subscription in subscriptions.loaded():
                if not subscription.terminated:
                    subscription.topic_terminated()
            if isinstance(log.properties.get(PROPERTY), list):
                done()
            else:
                # what is answered has to be the id for ever, also of a topic that has no entry to find it by
                log.properties = {**log.properties, PROPERTY: list(self.last)}
                log.write_birth(done)

        def lost(error: PersistenceError) -> None:
            if not subscriptions.ended:  # or somebody was told, by an earlier request
                subscriptions.terminated = False
                log.properties = {name: value for name, value in log.properties.items() if name != PROPERTY}
                log.write_birth()  # after the record that says otherwise and goes to the disk once that accepts it
            failed(error)

        log.barrier(written, lost)
