"""All non-persistent topics of a broker: those that were used or made and not deleted since. None is stored.

They stand apart from the stored topics, so that what walks over those (trimming, checkpoints, backlogs) never meets
one.
"""

from __future__ import annotations

from collections.abc import Callable

from magnetar.broker.throttling.shared_limits import SharedLimits
from magnetar.broker.topic.dispatch.dispatch_settings import DispatchSettings
from magnetar.broker.topic.nonpersistent.fan_out import InFlight
from magnetar.broker.topic.nonpersistent.nonpersistent_topic import NonPersistentTopic
from magnetar.broker.topic.publish.publish_checks import PublishSettings
from magnetar.model.names import TopicName
from magnetar.model.topic_policies import TopicPolicies
from magnetar.runtime.clock import Clock


class NonPersistentTopics:
    """The non-persistent topics of a broker, by full name.

    ``in_flight_max``: entries of one connection, see :mod:`magnetar.broker.topic.nonpersistent.fan_out`.
    """

    def __init__(
        self,
        settings: DispatchSettings,
        clock: Clock,
        in_flight_max: int,
        policies_of: Callable[[TopicName], TopicPolicies],
        publishing: PublishSettings | None = None,
        shared: SharedLimits | None = None,
    ) -> None:
        self._settings = settings
        self._policies_of = policies_of
        self._publishing = publishing or PublishSettings()
        self._shared = shared
        self._clock = clock
        self.in_flight = InFlight(in_flight_max)
        self.by_name: dict[str, NonPersistentTopic] = {}
        self.on_change: Callable[[TopicName, bool], object] = lambda name, there: None
        """Called with a topic that is there now, or is not any more."""

    def make(self, name: TopicName) -> NonPersistentTopic:
        """The caller has seen that it does not exist and may."""
        topic = self.by_name[name.fqn] = NonPersistentTopic(
            name, self._settings, self._clock, self.in_flight, self._policies_of, self._publishing, self._shared
        )
        self.on_change(name, True)
        return topic

    def remove(self, name: TopicName) -> None:
        """Disconnect its clients and forget it; fine if there is none (rule 4.7.2)."""
        topic = self.by_name.pop(name.fqn, None)
        if topic is not None:
            self.on_change(name, False)
            topic.close()

    def collect(self) -> int:
        """Forget those that were not used for as long as their policy allows; how many (rule 13.10)."""
        return sum(map(self.collect_one, list(self.by_name.values())))

    def collect_one(self, topic: NonPersistentTopic) -> bool:
        """Forget this one if it was idle for so long; whether it went."""
        now = self._clock.now_ms()
        if topic.in_use:
            topic.used_ms = now
            return False
        idle = self._policies_of(topic.name).inactive_topics
        if not idle.delete or now - topic.used_ms < idle.max_inactive_s * 1000:
            return False
        self.remove(topic.name)
        return True

    def policies_changed(self, concerned: Callable[[TopicName], bool]) -> None:
        """Apply new policies to what is there."""
        for topic in list(self.by_name.values()):
            if concerned(topic.name):
                topic.policies_changed()

    def close(self) -> None:
        """The broker ends."""
        for topic in list(self.by_name.values()):
            topic.close()
        self.by_name.clear()
