"""A non-persistent topic (rules of group 13): producers, subscriptions and a fan-out between them.

It exists from its first client, or its creation over REST, until it is deleted, collected for being idle, or the
broker ends; nothing of it is stored. Offers the connection what :class:`magnetar.broker.topic.topic.Topic` does, as
:mod:`magnetar.broker.topic.topic_api` has it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from magnetar.broker.throttling.shared_limits import SharedLimits
from magnetar.broker.topic.dispatch.dispatch_settings import DispatchSettings
from magnetar.broker.topic.dispatch.dispatcher_choice import TopicIdentity
from magnetar.broker.topic.limits import check_consumer, check_subscription, with_policies
from magnetar.broker.topic.nonpersistent.fan_out import FanOut, FanOutGroup, InFlight
from magnetar.broker.topic.nonpersistent.nonpersistent_subscription import (
    NonPersistentSubscription,
    nonpersistent_settings,
)
from magnetar.broker.topic.ports import Done, DurableAnswer, Log, SentTotals
from magnetar.broker.topic.publish.producer import Producer
from magnetar.broker.topic.publish.producers import Admitted, Producers
from magnetar.broker.topic.publish.publish_checks import PublishChecks, PublishSettings
from magnetar.broker.topic.publish.topic_epoch import MemoryEpoch
from magnetar.broker.topic.subscription.subscription_stats import sent_by
from magnetar.broker.topic.throughput import UNSEEN, Pace
from magnetar.broker.topic.topic_api import SubscriptionApi
from magnetar.model.errors import MagnetarError, ServiceNotReadyError
from magnetar.model.ids import Position
from magnetar.model.names import TopicName
from magnetar.model.subscription_types import SubType
from magnetar.model.topic_policies import TopicPolicies
from magnetar.protocol.sticky_key import sticky_keys
from magnetar.runtime.clock import Clock

_AT_ONCE_MAX: Final = 16
"""Up to so many subscriptions are given a group at once: what gathers behind a group that takes several turns of the
loop can be too much and is dropped then."""


class NonPersistentTopic:
    """Lives on the event loop. Policies are asked when a client comes; producers are notified of changes."""

    def __init__(
        self,
        name: TopicName,
        settings: DispatchSettings,
        clock: Clock,
        in_flight: InFlight,
        policies_of: Callable[[TopicName], TopicPolicies],
        publishing: PublishSettings,
        shared: SharedLimits | None = None,
    ) -> None:
        self.name = name
        self.clock = clock
        self._settings = settings
        self._policies_of = policies_of
        self._identity = TopicIdentity(name.fqn, max(name.partition_index, 0))
        # Failover: a topic without partitions chooses as partition 0 does (rule 13.4)
        self.producers = Producers(name.fqn, MemoryEpoch())
        self.checks = PublishChecks(name.fqn, self.producers, policies_of(name), clock, publishing, shared=shared)
        self.subscriptions: dict[str, NonPersistentSubscription] = {}
        self.closed = False
        self.msg_in = 0
        self.bytes_in = 0
        self.entries_in = 0
        self.pace: Pace = UNSEEN
        self.used_ms = clock.now_ms()
        """When it was last seen in use; kept by the collection of idle topics."""
        self._sent_before = SentTotals(0, 0)
        """What subscriptions that are gone had sent."""
        self._dropped_before = 0
        self._passes = (shared or SharedLimits()).passes
        self.log = FanOut(name.fqn, in_flight, self._deliver)

    @property
    def policies(self) -> TopicPolicies:
        """What holds now."""
        return self._policies_of(self.name)

    def when_durable(self, answer: DurableAnswer) -> None:
        """There is nothing to wait for."""
        answer(None)

    def _deliver(self, group: FanOutGroup, done: Done) -> None:
        self.entries_in += len(group.entries)
        self.msg_in += group.messages
        self.bytes_in += group.bytes
        if len(self.subscriptions) <= _AT_ONCE_MAX:
            for subscription in self.subscriptions.values():
                subscription.deliver(group)
            done()
        else:
            deliver = partial(NonPersistentSubscription.deliver, group=group)
            self._passes.start(list(self.subscriptions.values()), deliver, done)

    # producers ---------------------------------------------------------------------------------------------------

    def add_producer(self, producer: Producer, epoch: int | None, admitted: Admitted) -> bool:
        """See :meth:`Producers.admit`. Raises ServiceNotReadyError and MetadataError besides."""
        if self.closed:
            raise ServiceNotReadyError("Topic is temporarily unavailable")
        self.checks.admit(producer)
        return self.producers.admit(producer, epoch, self.checks.limits(), admitted)

    # subscriptions -----------------------------------------------------------------------------------------------

    def subscription(
        self, name: str, *, durable: bool, ordinal: Callable[[], int], properties: Mapping[str, str], done: Done
    ) -> NonPersistentSubscription:
        """The subscription of that name; durability and start mean nothing here (rule 13.6)."""
        if self.closed:
            raise ServiceNotReadyError("Topic is temporarily unavailable")
        found = self.subscriptions.get(name)
        if found is None:
            check_subscription(self.name.fqn, self.policies, len(self.subscriptions))
            found = NonPersistentSubscription(
                self._identity, name, self._settings_now(), self.clock, sticky_keys, properties
            )
            self.subscriptions[name] = found
        done()
        return found

    def _settings_now(self) -> DispatchSettings:
        return nonpersistent_settings(with_policies(self._settings, self.policies))

    def policies_changed(self) -> None:
        """What holds now is for producers that are there, and for consumers that come."""
        self.checks.set_policies(self.policies)
        settings = self._settings_now()
        for subscription in self.subscriptions.values():
            subscription.settings = settings

    def check_consumer(self, sub_type: SubType) -> None:
        """Whether one more consumer may come. Raises NotAllowedError, ConsumerBusyError (rules 5.1.5, 5.1.6)."""
        check_consumer(self.name.fqn, self.policies, sub_type, self.consumer_count)

    def consumer_gone(self, subscription: SubscriptionApi) -> None:
        """A consumer has left; the subscription goes with its last one."""
        held = self.subscriptions.get(subscription.name)
        if held is subscription and not held.consumers:
            self._forget(held)

    def after_deletion(self, subscription: str, answer: DurableAnswer) -> None:
        """Answer at once: nothing of it is written."""
        answer(None)

    def delete_subscription(self, name: str, done: Done) -> None:
        """Its consumers are disconnected."""
        subscription = self.subscriptions[name]
        subscription.close()
        self._forget(subscription)
        done()

    def _forget(self, subscription: NonPersistentSubscription) -> None:
        del self.subscriptions[subscription.name]
        gone, before = subscription.counters(), self._sent_before
        self._sent_before = SentTotals(before.messages + gone.messages_out, before.bytes + gone.bytes_out)
        self._dropped_before += subscription.dropped

    # statistics --------------------------------------------------------------------------------------------------

    def sent(self) -> SentTotals:
        """Since the topic was made, by subscriptions that are gone too."""
        return sent_by(self.subscriptions.values(), self._sent_before)

    def dropped(self) -> int:
        """Messages that a subscription could not give to any consumer, once for each such subscription."""
        return self._dropped_before + sum(subscription.dropped for subscription in self.subscriptions.values())

    def loaded_subscriptions(self) -> list[NonPersistentSubscription]:
        """All there are."""
        return list(self.subscriptions.values())

    def consumer_count(self) -> int:
        """Connected consumers of all subscriptions."""
        return sum(len(subscription.consumers) for subscription in self.subscriptions.values())

    @property
    def in_use(self) -> bool:
        """Whether a client is connected or a subscription is there (rule 13.10)."""
        return bool(len(self.producers) or self.subscriptions)

    # positions ---------------------------------------------------------------------------------------------------

    def reading_log(self, *, compacted: bool) -> Log:
        """Nothing of it is kept that could be compacted."""
        return self.log

    def read_by(self, subscription: SubscriptionApi, *, compacted: bool) -> None:
        """Do nothing: there is no compacted view."""

    def log_of(self, subscription: SubscriptionApi) -> Log:
        """The fan-out, for every subscription."""
        return self.log

    def find_time(
        self, publish_time_ms: int, done: Callable[[int | Exception], None], reader: SubscriptionApi | None = None
    ) -> None:
        """SEEK by time is a no-op."""
        done(0)

    def last_position(self) -> Position:
        """Raises MagnetarError: no message is kept (rule 13.11)."""
        raise MagnetarError(f"{self.name.fqn} has no last message: a non-persistent topic keeps none")

    def last_visible(self) -> int:
        """There is none."""
        return -1

    def close(self) -> None:
        """Unload or delete: every client is disconnected."""
        self.closed = True
        self.log.close()
        self.producers.close_all()
        for subscription in list(self.subscriptions.values()):
            subscription.close()
        self.subscriptions.clear()
