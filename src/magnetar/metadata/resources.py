"""Everything administrators name, in one place: clusters, tenants, namespaces, partitioned topics, topic policies.

Opening loads all of it into memory. :meth:`Resources.ensure_defaults` makes sure that what Pulsar's standalone comes
with is there (rule 14.16): its cluster, the tenants ``public`` and ``pulsar``, the namespaces ``public/default``
and ``pulsar/system``. Superusers administer those tenants.
"""

from __future__ import annotations

import logging
from contextlib import suppress

from magnetar.config.settings import Settings
from magnetar.metadata.clusters import Clusters
from magnetar.metadata.dynamic_configuration import DynamicConfiguration
from magnetar.metadata.namespaces import Namespaces
from magnetar.metadata.partitioned import PartitionedTopics
from magnetar.metadata.placement import Placement
from magnetar.metadata.resource_groups import ResourceGroups
from magnetar.metadata.schemas import SchemaStore
from magnetar.metadata.store import MetadataStore
from magnetar.metadata.tenants import Tenants
from magnetar.metadata.topic_policies import TopicPolicyRecords
from magnetar.model.errors import ConflictError, NotFoundError
from magnetar.model.names import NamespaceName, TopicName
from magnetar.model.system_topics import is_heartbeat

log = logging.getLogger(__name__)


class Resources:
    """Owner of the seven; used from the event loop's thread."""

    def __init__(self, store: MetadataStore, settings: Settings) -> None:
        self._store = store
        self._cluster = settings.clusterName
        self._super_user_roles = settings.super_user_roles
        self._with_public = settings.comes_with_public
        self.clusters = Clusters(store, settings.clusterName)
        self.tenants = Tenants(store, self.clusters)
        self.namespaces = Namespaces(store, self.tenants, settings.clusterName)
        self.resource_groups = ResourceGroups(store)
        self.partitioned = PartitionedTopics(store)
        self.topic_policies = TopicPolicyRecords(store)
        self.schemas = SchemaStore(store)
        self.placement = Placement(store)
        self.dynamic_configuration = DynamicConfiguration(store)
        self.take_limits(settings)

    def take_limits(self, settings: Settings) -> None:
        """Take the limits of the settings, which may change while the broker runs."""
        self.tenants.max_tenants = settings.maxTenants
        self.namespaces.bundle_count = settings.defaultNumberOfNamespaceBundles
        self.namespaces.max_per_tenant = settings.maxNamespacesPerTenant
        self.partitioned.max_partitions = settings.maxNumPartitionsPerPartitionedTopic

    async def ensure_defaults(self) -> None:
        """Write what Pulsar's standalone comes with, where it is not there yet; before anything is served."""
        await self.clusters.ensure(self._cluster, {})
        wanted = [("pulsar", "system")]
        if self._with_public:
            wanted.append(("public", "default"))
        elif not self.tenants.exists("public"):
            log.warning(
                "authorizationEnabled without brokerClientAuthenticationPlugin: as in Apache Pulsar, a superuser "
                "creates the tenant public and its namespaces"
            )
        for tenant, namespace in wanted:
            await self.tenants.ensure(tenant, self._cluster, self._super_user_roles)
            if not self.namespaces.exists(NamespaceName.parse(f"{tenant}/{namespace}")):
                with suppress(ConflictError):  # another broker was first
                    await self.namespaces.create(tenant, namespace)

    async def announce(self, **urls: str) -> None:
        """Record where this cluster is reached, once the ports are bound; an empty address is of no open port."""
        await self.clusters.announce(self._cluster, urls)

    def require_namespace(self, topic: TopicName) -> None:
        """Raises NotFoundError with the text that topic routes and lookups answer (rule 2.9)."""
        if not self.namespaces.takes_topics(topic.namespace) and not is_heartbeat(topic):
            raise NotFoundError("Namespace not found")

    async def close(self) -> None:
        await self._store.close()
