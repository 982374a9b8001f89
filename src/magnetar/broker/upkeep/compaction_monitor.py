"""Starts compaction of topics whose backlog since the last run has reached their threshold (rule 4.7.5).

A topic with a threshold has the cursor ``__compaction`` from the moment it is loaded or gets the policy, so nothing is
trimmed that was never compacted.
"""

from __future__ import annotations

from magnetar.broker.service import BrokerService
from magnetar.runtime.tasks import TaskGroup, in_turns


class CompactionMonitor:
    """The background task that starts compaction, for the whole broker."""

    def __init__(self, service: BrokerService) -> None:
        self._service = service
        self._tasks = TaskGroup("compaction")

    def start(self) -> None:
        """Begin; needs a running loop."""
        interval_s = self._service.settings.brokerServiceCompactionMonitorIntervalInSeconds
        self._tasks.repeat(interval_s, self.look, "monitor")

    async def close(self) -> None:
        """End."""
        await self._tasks.close()

    async def look(self) -> None:
        """Begin a run for every loaded topic that has reached its threshold."""
        settings = self._service.settings
        retain_keyless, keep_index = settings.topicCompactionRetainNullKey, settings.keeps_message_index
        async for topic in in_turns(list(self._service.topics.values())):
            threshold = topic.policies.compaction_threshold
            if threshold > 0 and not topic.closed:
                topic.compaction().begin_at(threshold, retain_keyless=retain_keyless, keep_index=keep_index)
