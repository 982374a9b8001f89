"""Everything administrators name, in one place: clusters, tenants, namespaces, partitioned topics, topic policies.

Opening loads all of it into memory. :meth:`Resources.ensure_defaults` makes sure that what Pulsar's standalone comes
with is there (rule 14.16): its cluster, the tenants ``public`` and ``pulsar``, the namespaces ``public/default``
and ``pulsar/system``. Superusers administer those tenants.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress

from magnetar.config.settings import Settings
from magnetar.metadata.clusters import Clusters
from magnetar.metadata.collection import change_together
from magnetar.metadata.dynamic_configuration import DynamicConfiguration
from magnetar.metadata.namespaces import Namespaces
from magnetar.metadata.partitioned import PartitionedTopics
from magnetar.metadata.placement import Placement
from magnetar.metadata.resource_groups import ResourceGroups
from magnetar.metadata.schemas import SchemaStore
from magnetar.metadata.store import MetadataStore, RecordWrite
from magnetar.metadata.tenants import Tenants
from magnetar.metadata.topic_policies import TopicPolicyRecords
from magnetar.model.errors import ConflictError, NotFoundError
from magnetar.model.names import NamespaceName, TopicName
from magnetar.model.schemas import SchemaId
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

    async def change_together(self, planned: Callable[[], Sequence[RecordWrite]]) -> None:
        """Make changes of several records, all or none of them, as :func:`~.collection.change_together` does."""
        await change_together(self._store, planned)

    async def forget_topic(self, topic: TopicName, partitions: Sequence[TopicName] = ()) -> None:
        """Revoke what was granted on a topic that is being deleted and, unless it is a partition, delete its policies.

        With a partitioned topic go the grants on its ``partitions``, and the note of those that were to be made.
        """

        def planned() -> list[RecordWrite]:
            writes = self.namespaces.without_grants([topic, *partitions])
            writes += [] if topic.is_partition else self.topic_policies.without(topic)
            return writes + (self.partitioned.without_note(topic) if self.partitioned.count(topic) else [])

        await self.change_together(planned)

    async def delete_partitioned(self, topic: TopicName, *, with_schema: bool) -> None:
        """Delete a partitioned topic whose partitions are gone, with all that is said of it. Raises NotFoundError."""
        await self.change_together(
            lambda: [
                *self.namespaces.without_grants([topic]),
                *self.topic_policies.without(topic),
                *(self.schemas.without(SchemaId.of(topic)) if with_schema else ()),
                *self.partitioned.without(topic),
            ]
        )

    async def delete_namespace(self, name: NamespaceName) -> None:
        """Delete a namespace without topics, with schemas of topics that never existed and all that is said of it."""
        tenant, _, local_name = name.text.partition("/")
        await self.change_together(
            lambda: [
                *(
                    one
                    for schema in self.schemas.of_namespace(tenant, local_name)
                    for one in self.schemas.without(schema)
                ),
                *self.placement.without_namespace(name),
                *self.namespaces.without(name),
            ]
        )

    async def delete_cluster(self, name: str) -> None:
        """Delete a cluster with all that is said about it. Raises NotFoundError."""
        self.clusters.get(name)
        await self.change_together(lambda: [*self.placement.without_cluster(name), *self.clusters.without(name)])

    async def close(self) -> None:
        await self._store.close()
