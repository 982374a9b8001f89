"""The broker of this very process, as the REST interface needs it: all its ports.

Everything runs on the broker's event loop. Methods that change something return when the change is durable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain

from magnetar.admin.local_broker.inner_clients import InnerClients
from magnetar.admin.local_broker.loaded_topics import LoadedTopics
from magnetar.admin.local_broker.messages import LocalMessages
from magnetar.admin.local_broker.offload_views import OffloadViews
from magnetar.admin.local_broker.statistics import LocalStatistics
from magnetar.admin.local_broker.stats.nonpersistent_stats import (
    nonpersistent_counters,
)
from magnetar.admin.local_broker.stats.topic_counters import topic_counters
from magnetar.admin.local_broker.subscriptions import LocalSubscriptions
from magnetar.admin.local_broker.topic_operations import LocalTopicOperations
from magnetar.admin.local_broker.topics import LocalTopics
from magnetar.admin.local_broker.transaction_views import TransactionViews
from magnetar.admin.ports import BrokerPorts, LookupAnswer
from magnetar.admin.values.counters import StorageCounters, TopicCounters
from magnetar.broker.connection.listener import Connections
from magnetar.broker.service import BrokerService
from magnetar.broker.upkeep.health_check import HealthCheck
from magnetar.broker.upkeep.rates import Rates
from magnetar.model.names import TopicName


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
        return LookupAnswer(*service.addresses(listener), service.web_service_url, service.web_service_url_tls)

    def web_url(self) -> str:
        return self._service.web_service_url or self._service.web_service_url_tls

    def broker_id(self) -> str:
        return self._service.broker_id

    async def check_health(self, *, with_cluster: bool) -> None:
        await self._heartbeat.check(with_cluster=with_cluster)

    def connections(self) -> int:
        return len(self._connections)

    def tls_counters(self) -> Mapping[str, int]:
        return self._service.tls_counters()

    def held_by_connections(self) -> Mapping[str, int]:
        return self._connections.held()

    def authentication_counters(self) -> Mapping[str, tuple[int, int]]:
        authentication = self._service.authentication
        return {} if authentication is None else authentication.counters()

    def authorization_counters(self) -> Mapping[str, int]:
        authorizer, audit = self._service.authorizer, self._service.audit
        found: dict[str, int] = {}
        if authorizer is not None:
            found["refusals"] = authorizer.refusals
        if audit is not None:
            found.update(lost=audit.lost, failing=audit.failing)
        return found

    def stuck_total(self) -> int:
        return self._service.stuck_total

    def counters(self) -> Iterable[TopicCounters]:
        stored = (topic_counters(topic, self._rates) for topic in list(self._service.topics.values()))
        nonpersistent = list(self._service.nonpersistent_topics.by_name.values())
        return chain(stored, (nonpersistent_counters(topic, self._rates) for topic in nonpersistent))

    def storage(self) -> StorageCounters:
        store = self._service.store
        journal = store.journal
        return StorageCounters(
            sync_data=journal.sync_data,
            failing=journal.failing is not None,
            writes=journal.writes,
            syncs=journal.writes if journal.sync_data else 0,
            bytes_written=journal.bytes_written,
            pending_bytes=journal.pending_bytes,
            segment=journal.segment,
            cache_bytes=store.cache.bytes,
            cache_bytes_max=store.cache.bytes_max,
        )
