"""A feature of a loaded topic: deduplication, delayed delivery, transactions, compaction and others.

A topic composes its features and keeps them in a list; what happens to the topic reaches each of them through this
protocol. A feature is handed the parts of a topic that it works on (the log, the producers, the subscriptions), never
the topic itself, so a closed topic is no reference cycle.
"""

from __future__ import annotations

from typing import Protocol

from magnetar.model.topic_policies import TopicPolicies


class TopicFeature(Protocol):
    """What a topic calls; each method does nothing unless the feature overrides it."""

    def policies_changed(self, before: TopicPolicies, now: TopicPolicies) -> None:
        """A policy of the topic or of its namespace has changed."""
        return

    def subscription_gone(self, name: str) -> None:
        """A subscription was deleted, or a non-durable one lost its last consumer."""
        return

    def trimmed(self, first: int) -> None:
        """The log has no entry below ``first`` any more."""
        return

    def close(self) -> None:
        """The topic is unloaded or deleted: stop timers and tasks, let go of callbacks."""
        return
