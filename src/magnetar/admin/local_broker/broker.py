"""The broker of this very process, as the REST interface needs it: all its ports.

Everything runs on the broker's event loop. Methods that change something return when the change is durable.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Final

from magnetar.admin.local_broker.control import LocalControl
from magnetar.admin.local_broker.inner_clients import InnerClients
from magnetar.admin.local_broker.loaded_topics import LoadedTopics
from magnetar.admin.local_broker.messages import LocalMessages
from magnetar.admin.local_broker.offload_views import OffloadViews
from magnetar.admin.local_broker.statistics import LocalStatistics
from magnetar.admin.local_broker.stats.measurements import measurements
from magnetar.admin.local_broker.stats.nonpersistent_stats import nonpersistent_counters
from magnetar.admin.local_broker.stats.topic_counters import topic_counters
from magnetar.admin.local_broker.subscriptions import LocalSubscriptions
from magnetar.admin.local_broker.topic_operations import LocalTopicOperations
from magnetar.admin.local_broker.topics import LocalTopics
from magnetar.admin.local_broker.transaction_views import TransactionViews
from magnetar.admin.ports import BrokerPorts, LookupAnswer
from magnetar.admin.values.counters import CounterOptions, Measured, TopicCounters
from magnetar.broker.connection.listener import Connections
from magnetar.broker.service import BrokerService
from magnetar.broker.upkeep.health_check import HealthCheck
from magnetar.broker.upkeep.rates import Rates
from magnetar.model.names import TopicName
from magnetar.runtime.tasks import in_turns

_TOPICS_PER_TURN: Final = 50


def local_ports(service: BrokerService, rates: Rates, connections: Connections) -> BrokerPorts:
    """All ports over one :class:`BrokerService`."""
    loaded = LoadedTopics(service)
    return BrokerPorts(
        topics=LocalTopics(loaded),
        operations=LocalTopicOperations(loaded),
        subscriptions=LocalSubscriptions(loaded),
        messages=LocalMessages(loaded),
        statistics=LocalStatistics(loaded, rates),
        broker=LocalBroker(service, rates, connections),
        control=LocalControl(service),
        schemas=service.schemas,
        offloads=OffloadViews(service),
        clients=InnerClients(service, connections),
        transactions=TransactionViews(service) if service.settings.transactionCoordinatorEnabled else None,
    )


class LocalBroker:
    """Implements :class:`magnetar.admin.ports.BrokerPort`."""

    def __init__(self, service: BrokerService, rates: Rates, connections: Connections) -> None:
        self._service = service
        self._rates = rates
        self._connections = connections
        self._heartbeat = HealthCheck(service)

    def lookup(self, topic: TopicName, listener: str | None) -> LookupAnswer:
        service = self._service
        with service.lookups.one():
            return LookupAnswer(*service.addresses(listener), service.web_service_url, service.web_service_url_tls)

    def web_url(self) -> str:
        return self._service.web_service_url or self._service.web_service_url_tls

    def broker_id(self) -> str:
        return self._service.broker_id

    async def check_health(self, *, with_cluster: bool) -> None:
        activity = self._service.activity
        activity.health = 0
        await self._heartbeat.check(with_cluster=with_cluster)
        activity.health = 1

    def measurements(self) -> Iterable[Measured]:
        return measurements(self._service, self._rates, self._connections)

    async def counters(self, options: CounterOptions) -> AsyncIterator[TopicCounters]:
        rates = self._rates
        stored = list(self._service.topics.values())
        nonpersistent = list(self._service.nonpersistent_topics.by_name.values())
        # this takes many turns of the loop: a topic may be gone when it comes to it
        async for topic in in_turns(stored, _TOPICS_PER_TURN):
            if not topic.closed and (counted := await topic_counters(topic, rates, options)) is not None:
                yield counted
        async for unstored in in_turns(nonpersistent, _TOPICS_PER_TURN):
            if not unstored.closed and (counted := await nonpersistent_counters(unstored, rates, options)) is not None:
                yield counted
