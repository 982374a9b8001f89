"""The groups of operations that block; made by ``python -m tools.admin_groups``: change nothing here."""

from __future__ import annotations

from builtins import dict as Dict
from builtins import list as List
from typing import Any, Literal

from magnetar.admin_api.models.clusters import BackupRequest, BrokerBackup, BrokerInfo, ClusterData, TenantInfo
from magnetar.admin_api.models.explanations import SkippedEntries, SubscriptionExplanation, UnacknowledgedMessages
from magnetar.admin_api.models.internal_stats import PartitionedTopicInternalStatistics, TopicInternalStatistics
from magnetar.admin_api.models.ledger_info import (
    ManagedLedgerInfo,
    OfflineTopicStatistics,
    PartitionedManagedLedgerInfo,
)
from magnetar.admin_api.models.messages import (
    AnalyzeBacklogResult,
    MessagePlace,
    ProducerMessages,
    PublishedMessages,
    ResetCursorData,
    SubscriptionStart,
)
from magnetar.admin_api.models.namespaces import BundlesData, Policies
from magnetar.admin_api.models.offload import (
    CompactedFiles,
    CompactionPlanFacts,
    LedgerCopy,
    LedgersToOffload,
    ObjectName,
    OffloadProcessStatus,
    ScannedLedgers,
)
from magnetar.admin_api.models.permissions import GrantTopicPermission, PermissionExplanation, RevokeTopicPermission
from magnetar.admin_api.models.placement import (
    BookieAffinity,
    BookieList,
    BookieRack,
    BundleOwnership,
    BundleQuota,
    ClusterMigration,
    ClusterUrl,
    FailureDomain,
    InternalConfiguration,
    IsolatedBroker,
    LoadReport,
    MetricGroup,
    NamespaceIsolation,
    ResourceGroupRates,
    TopicHashPositions,
)
from magnetar.admin_api.models.policies import (
    AutoSubscriptionCreationOverride,
    AutoTopicCreationOverride,
    BacklogQuotaLimit,
    DelayedDeliveryPolicies,
    DispatchRateLimit,
    EntryFilters,
    InactiveTopicPolicies,
    OffloadPolicies,
    PersistencePolicies,
    PublishRateLimit,
    RetentionPolicies,
    SubscribeRateLimit,
)
from magnetar.admin_api.models.schemas import (
    AllSchemaVersions,
    PostSchemaPayload,
    PostSchemaResponse,
    SchemaCompatibility,
    SchemaInfo,
    SchemaMetadata,
    VersionNumber,
)
from magnetar.admin_api.models.topic_stats import PartitionedTopicStatistics, TopicStatistics
from magnetar.admin_api.models.topics import LongRunningProcessStatus, LookupData, PartitionedTopicMetadata
from magnetar.admin_api.models.transactions import (
    BufferInternalStatistics,
    CoordinatorInfo,
    CoordinatorInternalStatistics,
    CoordinatorStatistics,
    PendingAckInternalStatistics,
    PendingAckStatistics,
    PositionInPendingAcks,
    TransactionBufferStatistics,
    TransactionInBuffer,
    TransactionInPendingAcks,
    TransactionMetadata,
)
from magnetar.admin_client.blocking_transport import BlockingTransport
from magnetar.admin_client.request import PeekedMessage


class BrokersGroup:
    """Brokers: health, version, settings."""

    def __init__(self, transport: BlockingTransport) -> None:
        self._ask = transport.ask

    def list(self) -> List[str]:
        """List the brokers."""
        found: List[str] = self._ask("brokers.list", {}, {})
        return found

    def list_active(self, cluster: str) -> List[str]:
        """List the brokers of a cluster."""
        found: List[str] = self._ask("brokers.list_active", {"cluster": cluster}, {})
        return found

    def health(self, *, topic_version: Literal["V1", "V2"] | None = None) -> str:
        """Send a message through the broker.

        Answers ok when a message has been stored and read again.
        """
        found: str = self._ask("brokers.health", {}, {"topicVersion": topic_version})
        return found

    def ready(self) -> str:
        """Say whether the broker serves."""
        found: str = self._ask("brokers.ready", {}, {})
        return found

    def version(self) -> str:
        """Name the version of Apache Pulsar that is followed."""
        found: str = self._ask("brokers.version", {}, {})
        return found

    def leader(self) -> BrokerInfo:
        """Name the leader of the brokers."""
        found: BrokerInfo = self._ask("brokers.leader", {}, {})
        return found

    def runtime_configuration(self) -> Dict[str, str | None]:
        """Show the settings in effect.

        Secrets are left out.
        """
        found: Dict[str, str | None] = self._ask("brokers.runtime_configuration", {}, {})
        return found

    def internal_configuration(self) -> InternalConfiguration:
        """Show where metadata are kept."""
        found: InternalConfiguration = self._ask("brokers.internal_configuration", {}, {})
        return found

    def list_dynamic_configuration_names(self) -> List[str]:
        """List the settings that may change."""
        found: List[str] = self._ask("brokers.list_dynamic_configuration_names", {}, {})
        return found

    def get_dynamic_configuration(self) -> Dict[str, str]:
        """Show the settings that were changed."""
        found: Dict[str, str] = self._ask("brokers.get_dynamic_configuration", {}, {})
        return found

    def set_dynamic_configuration(self, config_name: str, config_value: str) -> None:
        """Change a setting."""
        self._ask("brokers.set_dynamic_configuration", {"configName": config_name, "configValue": config_value}, {})

    def delete_dynamic_configuration(self, config_name: str) -> None:
        """Take back the change of a setting."""
        self._ask("brokers.delete_dynamic_configuration", {"configName": config_name}, {})

    def check_backlog_quotas(self) -> None:
        """Enforce all backlog quotas now."""
        self._ask("brokers.check_backlog_quotas", {}, {})

    def start_backup(self, value: BackupRequest) -> BrokerBackup:
        """Begin a backup. magnetar's own.

        Answered when its moment has come: what was receipted before is in it. It is written on.
        """
        found: BrokerBackup = self._ask("brokers.start_backup", {}, {}, value)
        return found

    def get_backup(self) -> BrokerBackup:
        """Show how far a backup is. magnetar's own."""
        found: BrokerBackup = self._ask("brokers.get_backup", {}, {})
        return found

    def shutdown(
        self, *, max_concurrent_unload_per_sec: int | None = None, forced_terminate_topic: bool | None = None
    ) -> None:
        """Stop the broker."""
        self._ask(
            "brokers.shutdown",
            {},
            {
                "maxConcurrentUnloadPerSec": max_concurrent_unload_per_sec,
                "forcedTerminateTopic": forced_terminate_topic,
            },
        )

    def get_owned_namespaces(self, cluster_name: str, broker_id: str) -> Dict[str, BundleOwnership]:
        """Show the bundles that a broker serves."""
        found: Dict[str, BundleOwnership] = self._ask(
            "brokers.get_owned_namespaces", {"clusterName": cluster_name, "brokerId": broker_id}, {}
        )
        return found

    def status(self) -> str:
        """Say whether the broker takes part, for load balancers."""
        found: str = self._ask("brokers.status", {}, {})
        return found


class MetricsGroup:
    """What the broker measures."""

    def __init__(self, transport: BlockingTransport) -> None:
        self._ask = transport.ask

    def prometheus(self) -> str:
        """Show metrics for Prometheus.

        In the text format 0.0.4, with Apache Pulsar's names.
        """
        found: str = self._ask("metrics.prometheus", {}, {})
        return found


class BrokerStatsGroup:
    """What the broker has to do, as JSON."""

    def __init__(self, transport: BlockingTransport) -> None:
        self._ask = transport.ask

    def get_metrics(self) -> List[MetricGroup]:
        """Show metrics as JSON."""
        found: List[MetricGroup] = self._ask("broker_stats.get_metrics", {}, {})
        return found

    def get_topics(self) -> Dict[str, Dict[str, Dict[str, Dict[str, Any]]]]:
        """Show statistics of all loaded topics.

        By namespace, bundle, domain and topic.
        """
        found: Dict[str, Dict[str, Dict[str, Dict[str, Any]]]] = self._ask("broker_stats.get_topics", {}, {})
        return found

    def get_load_report(self) -> LoadReport:
        """Show how much the broker has to do."""
        found: LoadReport = self._ask("broker_stats.get_load_report", {}, {})
        return found

    def get_broker_resource_availability(self, namespace: str) -> Dict[str, Any]:
        """Show what brokers could take."""
        found: Dict[str, Any] = self._ask("broker_stats.get_broker_resource_availability", {"namespace": namespace}, {})
        return found


class ClustersGroup:
    """Clusters and their addresses, failure domains and isolation policies."""

    def __init__(self, transport: BlockingTransport) -> None:
        self._ask = transport.ask

    def list(self) -> List[str]:
        """List the clusters."""
        found: List[str] = self._ask("clusters.list", {}, {})
        return found

    def get(self, cluster: str) -> ClusterData:
        """Show a cluster."""
        found: ClusterData = self._ask("clusters.get", {"cluster": cluster}, {})
        return found

    def create(self, cluster: str, value: ClusterData) -> None:
        """Create a cluster."""
        self._ask("clusters.create", {"cluster": cluster}, {}, value)

    def update(self, cluster: str, value: ClusterData) -> None:
        """Replace the addresses of a cluster."""
        self._ask("clusters.update", {"cluster": cluster}, {}, value)

    def delete(self, cluster: str) -> None:
        """Delete a cluster."""
        self._ask("clusters.delete", {"cluster": cluster}, {})

    def get_peers(self, cluster: str) -> List[str] | None:
        """List the peers of a cluster."""
        found: List[str] | None = self._ask("clusters.get_peers", {"cluster": cluster}, {})
        return found

    def set_peers(self, cluster: str, value: List[str]) -> None:
        """Set the peers of a cluster."""
        self._ask("clusters.set_peers", {"cluster": cluster}, {}, value)

    def get_migration(self, cluster: str) -> ClusterMigration:
        """Show whether clients of a cluster shall go elsewhere."""
        found: ClusterMigration = self._ask("clusters.get_migration", {"cluster": cluster}, {})
        return found

    def set_migration(self, cluster: str, value: ClusterUrl | None = None, *, migrated: bool | None = None) -> None:
        """Set whether clients of a cluster shall go elsewhere."""
        self._ask("clusters.set_migration", {"cluster": cluster}, {"migrated": migrated}, value)

    def list_failure_domains(self, cluster: str) -> Dict[str, FailureDomain]:
        """List the failure domains of a cluster."""
        found: Dict[str, FailureDomain] = self._ask("clusters.list_failure_domains", {"cluster": cluster}, {})
        return found

    def get_failure_domain(self, cluster: str, domain_name: str) -> FailureDomain:
        """Show a failure domain."""
        found: FailureDomain = self._ask(
            "clusters.get_failure_domain", {"cluster": cluster, "domainName": domain_name}, {}
        )
        return found

    def set_failure_domain(self, cluster: str, domain_name: str, value: FailureDomain) -> None:
        """Set the brokers of a failure domain."""
        self._ask("clusters.set_failure_domain", {"cluster": cluster, "domainName": domain_name}, {}, value)

    def delete_failure_domain(self, cluster: str, domain_name: str) -> None:
        """Delete a failure domain."""
        self._ask("clusters.delete_failure_domain", {"cluster": cluster, "domainName": domain_name}, {})

    def list_isolation_policies(self, cluster: str) -> Dict[str, NamespaceIsolation]:
        """List the isolation policies of a cluster."""
        found: Dict[str, NamespaceIsolation] = self._ask("clusters.list_isolation_policies", {"cluster": cluster}, {})
        return found

    def get_isolation_policy(self, cluster: str, policy_name: str) -> NamespaceIsolation:
        """Show an isolation policy."""
        found: NamespaceIsolation = self._ask(
            "clusters.get_isolation_policy", {"cluster": cluster, "policyName": policy_name}, {}
        )
        return found

    def set_isolation_policy(self, cluster: str, policy_name: str, value: NamespaceIsolation) -> None:
        """Set an isolation policy."""
        self._ask("clusters.set_isolation_policy", {"cluster": cluster, "policyName": policy_name}, {}, value)

    def delete_isolation_policy(self, cluster: str, policy_name: str) -> None:
        """Delete an isolation policy."""
        self._ask("clusters.delete_isolation_policy", {"cluster": cluster, "policyName": policy_name}, {})

    def list_isolated_brokers(self, cluster: str) -> List[IsolatedBroker]:
        """Show what isolation policies say of brokers."""
        found: List[IsolatedBroker] = self._ask("clusters.list_isolated_brokers", {"cluster": cluster}, {})
        return found

    def get_isolated_broker(self, cluster: str, broker: str) -> IsolatedBroker:
        """Show what isolation policies say of a broker."""
        found: IsolatedBroker = self._ask("clusters.get_isolated_broker", {"cluster": cluster, "broker": broker}, {})
        return found


class BookiesGroup:
    """Bookies, of which magnetar has none."""

    def __init__(self, transport: BlockingTransport) -> None:
        self._ask = transport.ask

    def list(self) -> BookieList:
        """List the bookies."""
        found: BookieList = self._ask("bookies.list", {}, {})
        return found

    def list_racks(self) -> Dict[str, Dict[str, BookieRack]]:
        """List the racks of bookies."""
        found: Dict[str, Dict[str, BookieRack]] = self._ask("bookies.list_racks", {}, {})
        return found

    def get_rack(self, bookie: str) -> BookieRack:
        """Show the rack of a bookie."""
        found: BookieRack = self._ask("bookies.get_rack", {"bookie": bookie}, {})
        return found

    def delete_rack(self, bookie: str) -> None:
        """Forget the rack of a bookie."""
        self._ask("bookies.delete_rack", {"bookie": bookie}, {})


class ResourceGroupsGroup:
    """Namespaces that share rates."""

    def __init__(self, transport: BlockingTransport) -> None:
        self._ask = transport.ask

    def list(self) -> List[str]:
        """List the resource groups."""
        found: List[str] = self._ask("resource_groups.list", {}, {})
        return found

    def get(self, resourcegroup: str) -> ResourceGroupRates:
        """Show a resource group."""
        found: ResourceGroupRates = self._ask("resource_groups.get", {"resourcegroup": resourcegroup}, {})
        return found

    def put(self, resourcegroup: str, value: ResourceGroupRates) -> None:
        """Create or change a resource group."""
        self._ask("resource_groups.put", {"resourcegroup": resourcegroup}, {}, value)

    def delete(self, resourcegroup: str) -> None:
        """Delete a resource group."""
        self._ask("resource_groups.delete", {"resourcegroup": resourcegroup}, {})


class ResourceQuotasGroup:
    """What bundles may need of a broker."""

    def __init__(self, transport: BlockingTransport) -> None:
        self._ask = transport.ask

    def get_default(self) -> BundleQuota:
        """Show the quota of bundles."""
        found: BundleQuota = self._ask("resource_quotas.get_default", {}, {})
        return found

    def set_default(self, value: BundleQuota) -> None:
        """Set the quota of bundles."""
        self._ask("resource_quotas.set_default", {}, {}, value)

    def get(self, namespace: str, bundle: str) -> BundleQuota:
        """Show the quota of a bundle."""
        found: BundleQuota = self._ask("resource_quotas.get", {"namespace": namespace, "bundle": bundle}, {})
        return found

    def set(self, namespace: str, bundle: str, value: BundleQuota) -> None:
        """Set the quota of a bundle."""
        self._ask("resource_quotas.set", {"namespace": namespace, "bundle": bundle}, {}, value)

    def reset(self, namespace: str, bundle: str) -> None:
        """Remove the quota of a bundle."""
        self._ask("resource_quotas.reset", {"namespace": namespace, "bundle": bundle}, {})


class TenantsGroup:
    """Tenants with their roles and clusters."""

    def __init__(self, transport: BlockingTransport) -> None:
        self._ask = transport.ask

    def list(self) -> List[str]:
        """List the tenants."""
        found: List[str] = self._ask("tenants.list", {}, {})
        return found

    def get(self, tenant: str) -> TenantInfo:
        """Show a tenant."""
        found: TenantInfo = self._ask("tenants.get", {"tenant": tenant}, {})
        return found

    def create(self, tenant: str, value: TenantInfo) -> None:
        """Create a tenant."""
        self._ask("tenants.create", {"tenant": tenant}, {}, value)

    def update(self, tenant: str, value: TenantInfo) -> None:
        """Replace the roles and clusters of a tenant."""
        self._ask("tenants.update", {"tenant": tenant}, {}, value)

    def delete(self, tenant: str, *, force: bool | None = None) -> None:
        """Delete a tenant."""
        self._ask("tenants.delete", {"tenant": tenant}, {"force": force})


class NamespacesGroup:
    """Namespaces, their policies and permissions."""

    def __init__(self, transport: BlockingTransport) -> None:
        self._ask = transport.ask

    def list(self, tenant: str) -> List[str]:
        """List the namespaces of a tenant."""
        found: List[str] = self._ask("namespaces.list", {"tenant": tenant}, {})
        return found

    def get_policies(self, namespace: str) -> Policies:
        """Show all policies of a namespace."""
        found: Policies = self._ask("namespaces.get_policies", {"namespace": namespace}, {})
        return found

    def create(self, namespace: str, value: Policies | None = None) -> None:
        """Create a namespace.

        The body sets policies from the beginning; each needs the right that setting it alone needs.
        """
        self._ask("namespaces.create", {"namespace": namespace}, {}, value)

    def delete(self, namespace: str, *, force: bool | None = None) -> None:
        """Delete a namespace."""
        self._ask("namespaces.delete", {"namespace": namespace}, {"force": force})

    def list_topics(
        self,
        namespace: str,
        *,
        mode: Literal["PERSISTENT", "NON_PERSISTENT", "ALL"] | None = None,
        include_system_topic: bool | None = None,
    ) -> List[str]:
        """List the topics of a namespace.

        Partitions are listed one by one; a long list is sent piece by piece.
        """
        found: List[str] = self._ask(
            "namespaces.list_topics",
            {"namespace": namespace},
            {"mode": mode, "includeSystemTopic": include_system_topic},
        )
        return found

    def get_bundles(self, namespace: str) -> BundlesData:
        """Show the bundles of a namespace."""
        found: BundlesData = self._ask("namespaces.get_bundles", {"namespace": namespace}, {})
        return found

    def unload(self, namespace: str) -> None:
        """Unload all topics of a namespace.

        Clients come back by themselves, and nothing is lost.
        """
        self._ask("namespaces.unload", {"namespace": namespace}, {})

    def unload_bundle(self, namespace: str, bundle: str) -> None:
        """Unload the topics of a bundle."""
        self._ask("namespaces.unload_bundle", {"namespace": namespace, "bundle": bundle}, {})

    def clear_backlog(self, namespace: str) -> None:
        """Acknowledge everything on all subscriptions of a namespace."""
        self._ask("namespaces.clear_backlog", {"namespace": namespace}, {})

    def clear_backlog_for_subscription(self, namespace: str, subscription: str) -> None:
        """Acknowledge everything on one subscription of all topics."""
        self._ask(
            "namespaces.clear_backlog_for_subscription", {"namespace": namespace, "subscription": subscription}, {}
        )

    def clear_bundle_backlog(self, namespace: str, bundle: str) -> None:
        """Acknowledge everything on all subscriptions of a bundle."""
        self._ask("namespaces.clear_bundle_backlog", {"namespace": namespace, "bundle": bundle}, {})

    def clear_bundle_backlog_for_subscription(self, namespace: str, bundle: str, subscription: str) -> None:
        """Acknowledge everything on one subscription of a bundle's topics."""
        self._ask(
            "namespaces.clear_bundle_backlog_for_subscription",
            {"namespace": namespace, "bundle": bundle, "subscription": subscription},
            {},
        )

    def unsubscribe(self, namespace: str, subscription: str) -> None:
        """Delete a subscription of all topics of a namespace."""
        self._ask("namespaces.unsubscribe", {"namespace": namespace, "subscription": subscription}, {})

    def unsubscribe_bundle(self, namespace: str, bundle: str, subscription: str) -> None:
        """Delete a subscription of all topics of a bundle."""
        self._ask(
            "namespaces.unsubscribe_bundle",
            {"namespace": namespace, "bundle": bundle, "subscription": subscription},
            {},
        )

    def get_properties(self, namespace: str) -> Dict[str, str]:
        """Show the properties of a namespace."""
        found: Dict[str, str] = self._ask("namespaces.get_properties", {"namespace": namespace}, {})
        return found

    def set_properties(self, namespace: str, value: Dict[str, str]) -> None:
        """Add properties to a namespace."""
        self._ask("namespaces.set_properties", {"namespace": namespace}, {}, value)

    def clear_properties(self, namespace: str) -> None:
        """Remove all properties of a namespace."""
        self._ask("namespaces.clear_properties", {"namespace": namespace}, {})

    def get_property(self, namespace: str, key: str) -> str | None:
        """Show a property of a namespace."""
        found: str | None = self._ask("namespaces.get_property", {"namespace": namespace, "key": key}, {})
        return found

    def set_property(self, namespace: str, key: str, value: str) -> None:
        """Set a property of a namespace."""
        self._ask("namespaces.set_property", {"namespace": namespace, "key": key, "value": value}, {})

    def remove_property(self, namespace: str, key: str) -> str | None:
        """Remove a property of a namespace.

        Answers the value that it had.
        """
        found: str | None = self._ask("namespaces.remove_property", {"namespace": namespace, "key": key}, {})
        return found

    def split_bundle(
        self,
        namespace: str,
        bundle: str,
        value: List[int] | None = None,
        *,
        unload: bool | None = None,
        split_algorithm_name: str | None = None,
    ) -> None:
        """Split a bundle.

        The body is places of the hash space, for specified_positions_divide.
        """
        self._ask(
            "namespaces.split_bundle",
            {"namespace": namespace, "bundle": bundle},
            {"unload": unload, "splitAlgorithmName": split_algorithm_name},
            value,
        )

    def delete_bundle(self, namespace: str, bundle: str, *, force: bool | None = None) -> None:
        """Give up a bundle."""
        self._ask("namespaces.delete_bundle", {"namespace": namespace, "bundle": bundle}, {"force": force})

    def get_topic_hash_positions(
        self, namespace: str, bundle: str, *, topics: List[str] | None = None
    ) -> TopicHashPositions:
        """Show where topics of a bundle lie in the hash space."""
        found: TopicHashPositions = self._ask(
            "namespaces.get_topic_hash_positions", {"namespace": namespace, "bundle": bundle}, {"topics": topics}
        )
        return found

    def list_anti_affinity_namespaces(self, cluster: str, group: str, *, tenant: str) -> List[str]:
        """List the namespaces of an anti-affinity group."""
        found: List[str] = self._ask(
            "namespaces.list_anti_affinity_namespaces", {"cluster": cluster, "group": group}, {"tenant": tenant}
        )
        return found

    def get_allowed_clusters(self, namespace: str) -> List[str]:
        """List the clusters that are allowed."""
        found: List[str] = self._ask("namespaces.get_allowed_clusters", {"namespace": namespace}, {})
        return found

    def set_allowed_clusters(self, namespace: str, value: List[str]) -> None:
        """Set the clusters that are allowed."""
        self._ask("namespaces.set_allowed_clusters", {"namespace": namespace}, {}, value)

    def set_migrated(self, namespace: str, value: bool) -> None:
        """Set whether clients of a namespace go where their cluster goes."""
        self._ask("namespaces.set_migrated", {"namespace": namespace}, {}, value)

    def get_bookie_affinity_group(self, namespace: str) -> BookieAffinity | None:
        """Show the racks that a namespace prefers."""
        found: BookieAffinity | None = self._ask("namespaces.get_bookie_affinity_group", {"namespace": namespace}, {})
        return found

    def set_bookie_affinity_group(self, namespace: str, value: BookieAffinity) -> None:
        """Set the racks that a namespace prefers."""
        self._ask("namespaces.set_bookie_affinity_group", {"namespace": namespace}, {}, value)

    def delete_bookie_affinity_group(self, namespace: str) -> None:
        """Remove the racks that a namespace prefers."""
        self._ask("namespaces.delete_bookie_affinity_group", {"namespace": namespace}, {})

    def get_resource_group(self, namespace: str) -> str | None:
        """Show the resource group of a namespace."""
        found: str | None = self._ask("namespaces.get_resource_group", {"namespace": namespace}, {})
        return found

    def set_resource_group(self, namespace: str, resourcegroup: str) -> None:
        """Put a namespace into a resource group."""
        self._ask("namespaces.set_resource_group", {"namespace": namespace, "resourcegroup": resourcegroup}, {})

    def remove_resource_group(self, namespace: str) -> None:
        """Take a namespace out of its resource group."""
        self._ask("namespaces.remove_resource_group", {"namespace": namespace}, {})

    def get_anti_affinity(self, namespace: str) -> str | None:
        """Show the anti-affinity group of a namespace.

        An answer without a body: it is not set.
        """
        found: str | None = self._ask("namespaces.get_anti_affinity", {"namespace": namespace}, {})
        return found

    def set_anti_affinity(self, namespace: str, value: str) -> None:
        """Set the anti-affinity group of a namespace."""
        self._ask("namespaces.set_anti_affinity", {"namespace": namespace}, {}, value)

    def remove_anti_affinity(self, namespace: str) -> None:
        """Remove the anti-affinity group from a namespace."""
        self._ask("namespaces.remove_anti_affinity", {"namespace": namespace}, {})

    def get_auto_subscription_creation(self, namespace: str) -> AutoSubscriptionCreationOverride | None:
        """Show whether subscriptions are created by consumers of a namespace.

        An answer without a body: it is not set.
        """
        found: AutoSubscriptionCreationOverride | None = self._ask(
            "namespaces.get_auto_subscription_creation", {"namespace": namespace}, {}
        )
        return found

    def set_auto_subscription_creation(self, namespace: str, value: AutoSubscriptionCreationOverride) -> None:
        """Set whether subscriptions are created by consumers of a namespace."""
        self._ask("namespaces.set_auto_subscription_creation", {"namespace": namespace}, {}, value)

    def remove_auto_subscription_creation(self, namespace: str) -> None:
        """Remove whether subscriptions are created by consumers from a namespace."""
        self._ask("namespaces.remove_auto_subscription_creation", {"namespace": namespace}, {})

    def get_auto_topic_creation(self, namespace: str) -> AutoTopicCreationOverride | None:
        """Show whether topics are created by clients of a namespace.

        An answer without a body: it is not set.
        """
        found: AutoTopicCreationOverride | None = self._ask(
            "namespaces.get_auto_topic_creation", {"namespace": namespace}, {}
        )
        return found

    def set_auto_topic_creation(self, namespace: str, value: AutoTopicCreationOverride) -> None:
        """Set whether topics are created by clients of a namespace."""
        self._ask("namespaces.set_auto_topic_creation", {"namespace": namespace}, {}, value)

    def remove_auto_topic_creation(self, namespace: str) -> None:
        """Remove whether topics are created by clients from a namespace."""
        self._ask("namespaces.remove_auto_topic_creation", {"namespace": namespace}, {})

    def get_compaction_threshold(self, namespace: str) -> int | None:
        """Show the bytes after which a topic is compacted of a namespace.

        An answer without a body: it is not set.
        """
        found: int | None = self._ask("namespaces.get_compaction_threshold", {"namespace": namespace}, {})
        return found

    def set_compaction_threshold(self, namespace: str, value: int) -> None:
        """Set the bytes after which a topic is compacted of a namespace."""
        self._ask("namespaces.set_compaction_threshold", {"namespace": namespace}, {}, value)

    def remove_compaction_threshold(self, namespace: str) -> None:
        """Remove the bytes after which a topic is compacted from a namespace."""
        self._ask("namespaces.remove_compaction_threshold", {"namespace": namespace}, {})

    def get_deduplication(self, namespace: str) -> bool | None:
        """Show whether messages are stored once however often they are sent of a namespace.

        An answer without a body: it is not set.
        """
        found: bool | None = self._ask("namespaces.get_deduplication", {"namespace": namespace}, {})
        return found

    def set_deduplication(self, namespace: str, value: bool) -> None:
        """Set whether messages are stored once however often they are sent of a namespace."""
        self._ask("namespaces.set_deduplication", {"namespace": namespace}, {}, value)

    def remove_deduplication(self, namespace: str) -> None:
        """Remove whether messages are stored once however often they are sent from a namespace."""
        self._ask("namespaces.remove_deduplication", {"namespace": namespace}, {})

    def get_deduplication_snapshot_interval(self, namespace: str) -> int | None:
        """Show the seconds between two snapshots of deduplication of a namespace.

        An answer without a body: it is not set.
        """
        found: int | None = self._ask("namespaces.get_deduplication_snapshot_interval", {"namespace": namespace}, {})
        return found

    def set_deduplication_snapshot_interval(self, namespace: str, value: int) -> None:
        """Set the seconds between two snapshots of deduplication of a namespace."""
        self._ask("namespaces.set_deduplication_snapshot_interval", {"namespace": namespace}, {}, value)

    def get_delayed_delivery(self, namespace: str) -> DelayedDeliveryPolicies | None:
        """Show delayed delivery of a namespace.

        An answer without a body: it is not set.
        """
        found: DelayedDeliveryPolicies | None = self._ask(
            "namespaces.get_delayed_delivery", {"namespace": namespace}, {}
        )
        return found

    def set_delayed_delivery(self, namespace: str, value: DelayedDeliveryPolicies) -> None:
        """Set delayed delivery of a namespace."""
        self._ask("namespaces.set_delayed_delivery", {"namespace": namespace}, {}, value)

    def remove_delayed_delivery(self, namespace: str) -> None:
        """Remove delayed delivery from a namespace."""
        self._ask("namespaces.remove_delayed_delivery", {"namespace": namespace}, {})

    def get_dispatch_rate(self, namespace: str) -> DispatchRateLimit | None:
        """Show the dispatch rate of each topic of a namespace.

        An answer without a body: it is not set.
        """
        found: DispatchRateLimit | None = self._ask("namespaces.get_dispatch_rate", {"namespace": namespace}, {})
        return found

    def set_dispatch_rate(self, namespace: str, value: DispatchRateLimit) -> None:
        """Set the dispatch rate of each topic of a namespace."""
        self._ask("namespaces.set_dispatch_rate", {"namespace": namespace}, {}, value)

    def remove_dispatch_rate(self, namespace: str) -> None:
        """Remove the dispatch rate of each topic from a namespace."""
        self._ask("namespaces.remove_dispatch_rate", {"namespace": namespace}, {})

    def get_dispatcher_pause_on_ack_state_persistent(self, namespace: str) -> bool:
        """Show whether dispatch waits while acknowledgements are stored of a namespace."""
        found: bool = self._ask("namespaces.get_dispatcher_pause_on_ack_state_persistent", {"namespace": namespace}, {})
        return found

    def set_dispatcher_pause_on_ack_state_persistent(self, namespace: str) -> None:
        """Set whether dispatch waits while acknowledgements are stored of a namespace."""
        self._ask("namespaces.set_dispatcher_pause_on_ack_state_persistent", {"namespace": namespace}, {})

    def remove_dispatcher_pause_on_ack_state_persistent(self, namespace: str) -> None:
        """Remove whether dispatch waits while acknowledgements are stored from a namespace."""
        self._ask("namespaces.remove_dispatcher_pause_on_ack_state_persistent", {"namespace": namespace}, {})

    def get_encryption_required(self, namespace: str) -> bool:
        """Show whether producers must encrypt their messages of a namespace."""
        found: bool = self._ask("namespaces.get_encryption_required", {"namespace": namespace}, {})
        return found

    def set_encryption_required(self, namespace: str, value: bool) -> None:
        """Set whether producers must encrypt their messages of a namespace."""
        self._ask("namespaces.set_encryption_required", {"namespace": namespace}, {}, value)

    def get_entry_filters(self, namespace: str) -> EntryFilters | None:
        """Show the entry filters of a namespace.

        An answer without a body: it is not set.
        """
        found: EntryFilters | None = self._ask("namespaces.get_entry_filters", {"namespace": namespace}, {})
        return found

    def set_entry_filters(self, namespace: str, value: EntryFilters) -> None:
        """Set the entry filters of a namespace."""
        self._ask("namespaces.set_entry_filters", {"namespace": namespace}, {}, value)

    def remove_entry_filters(self, namespace: str) -> None:
        """Remove the entry filters from a namespace."""
        self._ask("namespaces.remove_entry_filters", {"namespace": namespace}, {})

    def get_inactive_topic_policies(self, namespace: str) -> InactiveTopicPolicies | None:
        """Show when unused topics are deleted of a namespace.

        An answer without a body: it is not set.
        """
        found: InactiveTopicPolicies | None = self._ask(
            "namespaces.get_inactive_topic_policies", {"namespace": namespace}, {}
        )
        return found

    def set_inactive_topic_policies(self, namespace: str, value: InactiveTopicPolicies) -> None:
        """Set when unused topics are deleted of a namespace."""
        self._ask("namespaces.set_inactive_topic_policies", {"namespace": namespace}, {}, value)

    def remove_inactive_topic_policies(self, namespace: str) -> None:
        """Remove when unused topics are deleted from a namespace."""
        self._ask("namespaces.remove_inactive_topic_policies", {"namespace": namespace}, {})

    def get_is_allow_auto_update_schema(self, namespace: str) -> bool:
        """Show whether clients may register new versions of a schema of a namespace."""
        found: bool = self._ask("namespaces.get_is_allow_auto_update_schema", {"namespace": namespace}, {})
        return found

    def set_is_allow_auto_update_schema(self, namespace: str, value: bool) -> None:
        """Set whether clients may register new versions of a schema of a namespace."""
        self._ask("namespaces.set_is_allow_auto_update_schema", {"namespace": namespace}, {}, value)

    def get_max_consumers_per_subscription(self, namespace: str) -> int | None:
        """Show the most consumers of a subscription of a namespace.

        An answer without a body: it is not set.
        """
        found: int | None = self._ask("namespaces.get_max_consumers_per_subscription", {"namespace": namespace}, {})
        return found

    def set_max_consumers_per_subscription(self, namespace: str, value: int) -> None:
        """Set the most consumers of a subscription of a namespace."""
        self._ask("namespaces.set_max_consumers_per_subscription", {"namespace": namespace}, {}, value)

    def remove_max_consumers_per_subscription(self, namespace: str) -> None:
        """Remove the most consumers of a subscription from a namespace."""
        self._ask("namespaces.remove_max_consumers_per_subscription", {"namespace": namespace}, {})

    def get_max_consumers_per_topic(self, namespace: str) -> int | None:
        """Show the most consumers of a topic of a namespace.

        An answer without a body: it is not set.
        """
        found: int | None = self._ask("namespaces.get_max_consumers_per_topic", {"namespace": namespace}, {})
        return found

    def set_max_consumers_per_topic(self, namespace: str, value: int) -> None:
        """Set the most consumers of a topic of a namespace."""
        self._ask("namespaces.set_max_consumers_per_topic", {"namespace": namespace}, {}, value)

    def remove_max_consumers_per_topic(self, namespace: str) -> None:
        """Remove the most consumers of a topic from a namespace."""
        self._ask("namespaces.remove_max_consumers_per_topic", {"namespace": namespace}, {})

    def get_max_producers_per_topic(self, namespace: str) -> int | None:
        """Show the most producers of a topic of a namespace.

        An answer without a body: it is not set.
        """
        found: int | None = self._ask("namespaces.get_max_producers_per_topic", {"namespace": namespace}, {})
        return found

    def set_max_producers_per_topic(self, namespace: str, value: int) -> None:
        """Set the most producers of a topic of a namespace."""
        self._ask("namespaces.set_max_producers_per_topic", {"namespace": namespace}, {}, value)

    def remove_max_producers_per_topic(self, namespace: str) -> None:
        """Remove the most producers of a topic from a namespace."""
        self._ask("namespaces.remove_max_producers_per_topic", {"namespace": namespace}, {})

    def get_max_subscriptions_per_topic(self, namespace: str) -> int | None:
        """Show the most subscriptions of a topic of a namespace.

        An answer without a body: it is not set.
        """
        found: int | None = self._ask("namespaces.get_max_subscriptions_per_topic", {"namespace": namespace}, {})
        return found

    def set_max_subscriptions_per_topic(self, namespace: str, value: int) -> None:
        """Set the most subscriptions of a topic of a namespace."""
        self._ask("namespaces.set_max_subscriptions_per_topic", {"namespace": namespace}, {}, value)

    def remove_max_subscriptions_per_topic(self, namespace: str) -> None:
        """Remove the most subscriptions of a topic from a namespace."""
        self._ask("namespaces.remove_max_subscriptions_per_topic", {"namespace": namespace}, {})

    def get_max_topics_per_namespace(self, namespace: str) -> int:
        """Show the most topics of a namespace."""
        found: int = self._ask("namespaces.get_max_topics_per_namespace", {"namespace": namespace}, {})
        return found

    def set_max_topics_per_namespace(self, namespace: str, value: int) -> None:
        """Set the most topics of a namespace."""
        self._ask("namespaces.set_max_topics_per_namespace", {"namespace": namespace}, {}, value)

    def remove_max_topics_per_namespace(self, namespace: str) -> None:
        """Remove the most topics from a namespace."""
        self._ask("namespaces.remove_max_topics_per_namespace", {"namespace": namespace}, {})

    def get_max_unacked_messages_per_consumer(self, namespace: str) -> int | None:
        """Show the most unacknowledged messages of a consumer of a namespace.

        An answer without a body: it is not set.
        """
        found: int | None = self._ask("namespaces.get_max_unacked_messages_per_consumer", {"namespace": namespace}, {})
        return found

    def set_max_unacked_messages_per_consumer(self, namespace: str, value: int) -> None:
        """Set the most unacknowledged messages of a consumer of a namespace."""
        self._ask("namespaces.set_max_unacked_messages_per_consumer", {"namespace": namespace}, {}, value)

    def remove_max_unacked_messages_per_consumer(self, namespace: str) -> None:
        """Remove the most unacknowledged messages of a consumer from a namespace."""
        self._ask("namespaces.remove_max_unacked_messages_per_consumer", {"namespace": namespace}, {})

    def get_max_unacked_messages_per_subscription(self, namespace: str) -> int | None:
        """Show the most unacknowledged messages of a subscription of a namespace.

        An answer without a body: it is not set.
        """
        found: int | None = self._ask(
            "namespaces.get_max_unacked_messages_per_subscription", {"namespace": namespace}, {}
        )
        return found

    def set_max_unacked_messages_per_subscription(self, namespace: str, value: int) -> None:
        """Set the most unacknowledged messages of a subscription of a namespace."""
        self._ask("namespaces.set_max_unacked_messages_per_subscription", {"namespace": namespace}, {}, value)

    def remove_max_unacked_messages_per_subscription(self, namespace: str) -> None:
        """Remove the most unacknowledged messages of a subscription from a namespace."""
        self._ask("namespaces.remove_max_unacked_messages_per_subscription", {"namespace": namespace}, {})

    def get_message_ttl(self, namespace: str) -> int | None:
        """Show the seconds after which unacknowledged messages expire of a namespace.

        An answer without a body: it is not set.
        """
        found: int | None = self._ask("namespaces.get_message_ttl", {"namespace": namespace}, {})
        return found

    def set_message_ttl(self, namespace: str, value: int) -> None:
        """Set the seconds after which unacknowledged messages expire of a namespace."""
        self._ask("namespaces.set_message_ttl", {"namespace": namespace}, {}, value)

    def remove_message_ttl(self, namespace: str) -> None:
        """Remove the seconds after which unacknowledged messages expire from a namespace."""
        self._ask("namespaces.remove_message_ttl", {"namespace": namespace}, {})

    def get_offload_deletion_lag_ms(self, namespace: str) -> int | None:
        """Show the milliseconds that offloaded ledgers are kept here of a namespace.

        An answer without a body: it is not set.
        """
        found: int | None = self._ask("namespaces.get_offload_deletion_lag_ms", {"namespace": namespace}, {})
        return found

    def set_offload_deletion_lag_ms(self, namespace: str, value: int) -> None:
        """Set the milliseconds that offloaded ledgers are kept here of a namespace."""
        self._ask("namespaces.set_offload_deletion_lag_ms", {"namespace": namespace}, {}, value)

    def remove_offload_deletion_lag_ms(self, namespace: str) -> None:
        """Remove the milliseconds that offloaded ledgers are kept here from a namespace."""
        self._ask("namespaces.remove_offload_deletion_lag_ms", {"namespace": namespace}, {})

    def get_offload_threshold(self, namespace: str) -> int:
        """Show the bytes of a topic after which ledgers are offloaded of a namespace."""
        found: int = self._ask("namespaces.get_offload_threshold", {"namespace": namespace}, {})
        return found

    def set_offload_threshold(self, namespace: str, value: int) -> None:
        """Set the bytes of a topic after which ledgers are offloaded of a namespace."""
        self._ask("namespaces.set_offload_threshold", {"namespace": namespace}, {}, value)

    def get_offload_threshold_in_seconds(self, namespace: str) -> int:
        """Show the seconds after which ledgers are offloaded of a namespace."""
        found: int = self._ask("namespaces.get_offload_threshold_in_seconds", {"namespace": namespace}, {})
        return found

    def set_offload_threshold_in_seconds(self, namespace: str, value: int) -> None:
        """Set the seconds after which ledgers are offloaded of a namespace."""
        self._ask("namespaces.set_offload_threshold_in_seconds", {"namespace": namespace}, {}, value)

    def get_persistence(self, namespace: str) -> PersistencePolicies | None:
        """Show the copies in Apache BookKeeper of a namespace.

        An answer without a body: it is not set.
        """
        found: PersistencePolicies | None = self._ask("namespaces.get_persistence", {"namespace": namespace}, {})
        return found

    def set_persistence(self, namespace: str, value: PersistencePolicies) -> None:
        """Set the copies in Apache BookKeeper of a namespace."""
        self._ask("namespaces.set_persistence", {"namespace": namespace}, {}, value)

    def remove_persistence(self, namespace: str) -> None:
        """Remove the copies in Apache BookKeeper from a namespace."""
        self._ask("namespaces.remove_persistence", {"namespace": namespace}, {})

    def get_publish_rate(self, namespace: str) -> PublishRateLimit | None:
        """Show the publish rate of each topic of a namespace.

        An answer without a body: it is not set.
        """
        found: PublishRateLimit | None = self._ask("namespaces.get_publish_rate", {"namespace": namespace}, {})
        return found

    def set_publish_rate(self, namespace: str, value: PublishRateLimit) -> None:
        """Set the publish rate of each topic of a namespace."""
        self._ask("namespaces.set_publish_rate", {"namespace": namespace}, {}, value)

    def remove_publish_rate(self, namespace: str) -> None:
        """Remove the publish rate of each topic from a namespace."""
        self._ask("namespaces.remove_publish_rate", {"namespace": namespace}, {})

    def get_replication(self, namespace: str) -> List[str]:
        """Show the clusters of a namespace."""
        found: List[str] = self._ask("namespaces.get_replication", {"namespace": namespace}, {})
        return found

    def set_replication(self, namespace: str, value: List[str]) -> None:
        """Set the clusters of a namespace."""
        self._ask("namespaces.set_replication", {"namespace": namespace}, {}, value)

    def get_replicator_dispatch_rate(self, namespace: str) -> DispatchRateLimit | None:
        """Show the rate of replication of a namespace.

        An answer without a body: it is not set.
        """
        found: DispatchRateLimit | None = self._ask(
            "namespaces.get_replicator_dispatch_rate", {"namespace": namespace}, {}
        )
        return found

    def set_replicator_dispatch_rate(self, namespace: str, value: DispatchRateLimit) -> None:
        """Set the rate of replication of a namespace."""
        self._ask("namespaces.set_replicator_dispatch_rate", {"namespace": namespace}, {}, value)

    def remove_replicator_dispatch_rate(self, namespace: str) -> None:
        """Remove the rate of replication from a namespace."""
        self._ask("namespaces.remove_replicator_dispatch_rate", {"namespace": namespace}, {})

    def get_retention(self, namespace: str) -> RetentionPolicies | None:
        """Show how long acknowledged messages are kept of a namespace.

        An answer without a body: it is not set.
        """
        found: RetentionPolicies | None = self._ask("namespaces.get_retention", {"namespace": namespace}, {})
        return found

    def set_retention(self, namespace: str, value: RetentionPolicies) -> None:
        """Set how long acknowledged messages are kept of a namespace."""
        self._ask("namespaces.set_retention", {"namespace": namespace}, {}, value)

    def remove_retention(self, namespace: str) -> None:
        """Remove how long acknowledged messages are kept from a namespace."""
        self._ask("namespaces.remove_retention", {"namespace": namespace}, {})

    def get_schema_auto_update_compatibility_strategy(
        self, namespace: str
    ) -> (
        Literal[
            "AutoUpdateDisabled",
            "Backward",
            "Forward",
            "Full",
            "AlwaysCompatible",
            "BackwardTransitive",
            "ForwardTransitive",
            "FullTransitive",
        ]
        | None
    ):
        """Show the older form of the compatibility strategy of a namespace.

        An answer without a body: it is not set.
        """
        found: (
            Literal[
                "AutoUpdateDisabled",
                "Backward",
                "Forward",
                "Full",
                "AlwaysCompatible",
                "BackwardTransitive",
                "ForwardTransitive",
                "FullTransitive",
            ]
            | None
        ) = self._ask("namespaces.get_schema_auto_update_compatibility_strategy", {"namespace": namespace}, {})
        return found

    def set_schema_auto_update_compatibility_strategy(
        self,
        namespace: str,
        value: Literal[
            "AutoUpdateDisabled",
            "Backward",
            "Forward",
            "Full",
            "AlwaysCompatible",
            "BackwardTransitive",
            "ForwardTransitive",
            "FullTransitive",
        ],
    ) -> None:
        """Set the older form of the compatibility strategy of a namespace."""
        self._ask("namespaces.set_schema_auto_update_compatibility_strategy", {"namespace": namespace}, {}, value)

    def get_schema_compatibility_strategy(
        self, namespace: str
    ) -> Literal[
        "UNDEFINED",
        "ALWAYS_INCOMPATIBLE",
        "ALWAYS_COMPATIBLE",
        "BACKWARD",
        "FORWARD",
        "FULL",
        "BACKWARD_TRANSITIVE",
        "FORWARD_TRANSITIVE",
        "FULL_TRANSITIVE",
    ]:
        """Show how new schemas must fit earlier ones of a namespace."""
        found: Literal[
            "UNDEFINED",
            "ALWAYS_INCOMPATIBLE",
            "ALWAYS_COMPATIBLE",
            "BACKWARD",
            "FORWARD",
            "FULL",
            "BACKWARD_TRANSITIVE",
            "FORWARD_TRANSITIVE",
            "FULL_TRANSITIVE",
        ] = self._ask("namespaces.get_schema_compatibility_strategy", {"namespace": namespace}, {})
        return found

    def set_schema_compatibility_strategy(
        self,
        namespace: str,
        value: Literal[
            "UNDEFINED",
            "ALWAYS_INCOMPATIBLE",
            "ALWAYS_COMPATIBLE",
            "BACKWARD",
            "FORWARD",
            "FULL",
            "BACKWARD_TRANSITIVE",
            "FORWARD_TRANSITIVE",
            "FULL_TRANSITIVE",
        ],
    ) -> None:
        """Set how new schemas must fit earlier ones of a namespace."""
        self._ask("namespaces.set_schema_compatibility_strategy", {"namespace": namespace}, {}, value)

    def get_schema_validation_enforced(self, namespace: str, *, applied: bool | None = None) -> bool:
        """Show whether producers must have a schema of a namespace."""
        found: bool = self._ask(
            "namespaces.get_schema_validation_enforced", {"namespace": namespace}, {"applied": applied}
        )
        return found

    def set_schema_validation_enforced(self, namespace: str, value: bool) -> None:
        """Set whether producers must have a schema of a namespace."""
        self._ask("namespaces.set_schema_validation_enforced", {"namespace": namespace}, {}, value)

    def get_subscribe_rate(self, namespace: str) -> SubscribeRateLimit | None:
        """Show how often a consumer may connect of a namespace.

        An answer without a body: it is not set.
        """
        found: SubscribeRateLimit | None = self._ask("namespaces.get_subscribe_rate", {"namespace": namespace}, {})
        return found

    def set_subscribe_rate(self, namespace: str, value: SubscribeRateLimit) -> None:
        """Set how often a consumer may connect of a namespace."""
        self._ask("namespaces.set_subscribe_rate", {"namespace": namespace}, {}, value)

    def remove_subscribe_rate(self, namespace: str) -> None:
        """Remove how often a consumer may connect from a namespace."""
        self._ask("namespaces.remove_subscribe_rate", {"namespace": namespace}, {})

    def get_subscription_auth_mode(self, namespace: str) -> Literal["None", "Prefix"]:
        """Show whether names of subscriptions begin with their role of a namespace."""
        found: Literal["None", "Prefix"] = self._ask(
            "namespaces.get_subscription_auth_mode", {"namespace": namespace}, {}
        )
        return found

    def set_subscription_auth_mode(self, namespace: str, value: Literal["None", "Prefix"]) -> None:
        """Set whether names of subscriptions begin with their role of a namespace."""
        self._ask("namespaces.set_subscription_auth_mode", {"namespace": namespace}, {}, value)

    def get_subscription_dispatch_rate(self, namespace: str) -> DispatchRateLimit | None:
        """Show the dispatch rate of each subscription of a namespace.

        An answer without a body: it is not set.
        """
        found: DispatchRateLimit | None = self._ask(
            "namespaces.get_subscription_dispatch_rate", {"namespace": namespace}, {}
        )
        return found

    def set_subscription_dispatch_rate(self, namespace: str, value: DispatchRateLimit) -> None:
        """Set the dispatch rate of each subscription of a namespace."""
        self._ask("namespaces.set_subscription_dispatch_rate", {"namespace": namespace}, {}, value)

    def remove_subscription_dispatch_rate(self, namespace: str) -> None:
        """Remove the dispatch rate of each subscription from a namespace."""
        self._ask("namespaces.remove_subscription_dispatch_rate", {"namespace": namespace}, {})

    def get_subscription_expiration_time(self, namespace: str) -> int | None:
        """Show the minutes after which unused subscriptions are deleted of a namespace.

        An answer without a body: it is not set.
        """
        found: int | None = self._ask("namespaces.get_subscription_expiration_time", {"namespace": namespace}, {})
        return found

    def set_subscription_expiration_time(self, namespace: str, value: int) -> None:
        """Set the minutes after which unused subscriptions are deleted of a namespace."""
        self._ask("namespaces.set_subscription_expiration_time", {"namespace": namespace}, {}, value)

    def remove_subscription_expiration_time(self, namespace: str) -> None:
        """Remove the minutes after which unused subscriptions are deleted from a namespace."""
        self._ask("namespaces.remove_subscription_expiration_time", {"namespace": namespace}, {})

    def get_subscription_types_enabled(
        self, namespace: str
    ) -> List[Literal["Exclusive", "Shared", "Failover", "Key_Shared"]]:
        """Show the types of subscriptions that are allowed of a namespace."""
        found: List[Literal["Exclusive", "Shared", "Failover", "Key_Shared"]] = self._ask(
            "namespaces.get_subscription_types_enabled", {"namespace": namespace}, {}
        )
        return found

    def set_subscription_types_enabled(
        self, namespace: str, value: List[Literal["Exclusive", "Shared", "Failover", "Key_Shared"]]
    ) -> None:
        """Set the types of subscriptions that are allowed of a namespace."""
        self._ask("namespaces.set_subscription_types_enabled", {"namespace": namespace}, {}, value)

    def remove_subscription_types_enabled(self, namespace: str) -> None:
        """Remove the types of subscriptions that are allowed from a namespace."""
        self._ask("namespaces.remove_subscription_types_enabled", {"namespace": namespace}, {})

    def get_backlog_quotas(self, namespace: str) -> Dict[str, BacklogQuotaLimit]:
        """Show the backlog quotas of a namespace."""
        found: Dict[str, BacklogQuotaLimit] = self._ask("namespaces.get_backlog_quotas", {"namespace": namespace}, {})
        return found

    def set_backlog_quota(
        self,
        namespace: str,
        value: BacklogQuotaLimit,
        *,
        backlog_quota_type: Literal["destination_storage", "message_age"] | None = None,
    ) -> None:
        """Set a backlog quota of a namespace."""
        self._ask(
            "namespaces.set_backlog_quota", {"namespace": namespace}, {"backlogQuotaType": backlog_quota_type}, value
        )

    def remove_backlog_quota(
        self, namespace: str, *, backlog_quota_type: Literal["destination_storage", "message_age"] | None = None
    ) -> None:
        """Remove a backlog quota from a namespace."""
        self._ask("namespaces.remove_backlog_quota", {"namespace": namespace}, {"backlogQuotaType": backlog_quota_type})

    def get_offload_policies(self, namespace: str) -> OffloadPolicies | None:
        """Show when ledgers of a namespace are offloaded."""
        found: OffloadPolicies | None = self._ask("namespaces.get_offload_policies", {"namespace": namespace}, {})
        return found

    def set_offload_policies(self, namespace: str, value: OffloadPolicies) -> None:
        """Set when ledgers of a namespace are offloaded."""
        self._ask("namespaces.set_offload_policies", {"namespace": namespace}, {}, value)

    def remove_offload_policies(self, namespace: str) -> None:
        """Remove when ledgers are offloaded from a namespace."""
        self._ask("namespaces.remove_offload_policies", {"namespace": namespace}, {})

    def scan_offloaded_ledgers(self, namespace: str) -> ScannedLedgers:
        """List the copies of ledgers in the object store."""
        found: ScannedLedgers = self._ask("namespaces.scan_offloaded_ledgers", {"namespace": namespace}, {})
        return found

    def get_permissions(
        self, namespace: str
    ) -> Dict[str, List[Literal["produce", "consume", "functions", "sources", "sinks", "packages"]]]:
        """Show what is granted on a namespace.

        Actions by role.
        """
        found: Dict[str, List[Literal["produce", "consume", "functions", "sources", "sinks", "packages"]]] = self._ask(
            "namespaces.get_permissions", {"namespace": namespace}, {}
        )
        return found

    def grant_permission(
        self,
        namespace: str,
        role: str,
        value: List[Literal["produce", "consume", "functions", "sources", "sinks", "packages"]],
    ) -> None:
        """Grant actions on all topics of a namespace.

        They replace those that the role had.
        """
        self._ask("namespaces.grant_permission", {"namespace": namespace, "role": role}, {}, value)

    def revoke_permission(self, namespace: str, role: str) -> None:
        """Revoke what was granted on a namespace."""
        self._ask("namespaces.revoke_permission", {"namespace": namespace, "role": role}, {})

    def get_subscription_permissions(self, namespace: str) -> Dict[str, List[str]]:
        """Show which subscriptions are left to roles.

        Roles by subscription.
        """
        found: Dict[str, List[str]] = self._ask("namespaces.get_subscription_permissions", {"namespace": namespace}, {})
        return found

    def grant_subscription_permission(self, namespace: str, subscription: str, value: List[str]) -> None:
        """Leave a subscription to roles."""
        self._ask(
            "namespaces.grant_subscription_permission",
            {"namespace": namespace, "subscription": subscription},
            {},
            value,
        )

    def revoke_subscription_permission(self, namespace: str, subscription: str, role: str) -> None:
        """Take a role off a subscription's list."""
        self._ask(
            "namespaces.revoke_subscription_permission",
            {"namespace": namespace, "subscription": subscription, "role": role},
            {},
        )

    def grant_permissions_on_topics(self, value: List[GrantTopicPermission]) -> None:
        """Grant on several topics of one namespace, all or nothing."""
        self._ask("namespaces.grant_permissions_on_topics", {}, {}, value)

    def revoke_permissions_on_topics(self, value: List[RevokeTopicPermission]) -> None:
        """Revoke on several topics of one namespace, all or nothing."""
        self._ask("namespaces.revoke_permissions_on_topics", {}, {}, value)


class TopicsGroup:
    """Topics, their partitions, statistics and messages."""

    def __init__(self, transport: BlockingTransport) -> None:
        self._ask = transport.ask

    def get_permissions(
        self, topic: str
    ) -> Dict[str, List[Literal["produce", "consume", "functions", "sources", "sinks", "packages"]]]:
        """Show what is granted on a topic.

        Actions by role, those of its namespace included.
        """
        found: Dict[str, List[Literal["produce", "consume", "functions", "sources", "sinks", "packages"]]] = self._ask(
            "topics.get_permissions", {"topic": topic}, {}
        )
        return found

    def grant_permission(
        self,
        topic: str,
        role: str,
        value: List[Literal["produce", "consume", "functions", "sources", "sinks", "packages"]],
    ) -> None:
        """Grant actions on a topic and its partitions."""
        self._ask("topics.grant_permission", {"topic": topic, "role": role}, {}, value)

    def revoke_permission(self, topic: str, role: str) -> None:
        """Revoke what was granted on a topic."""
        self._ask("topics.revoke_permission", {"topic": topic, "role": role}, {})

    def list(
        self,
        namespace: str,
        domain: Literal["persistent", "non-persistent"] = "persistent",
        *,
        include_system_topic: bool | None = None,
        bundle: str | None = None,
    ) -> List[str]:
        """List the topics of a namespace.

        Partitions are listed one by one.
        """
        found: List[str] = self._ask(
            "topics.list",
            {"namespace": namespace, "domain": domain},
            {"includeSystemTopic": include_system_topic, "bundle": bundle},
        )
        return found

    def list_partitioned(
        self,
        namespace: str,
        domain: Literal["persistent", "non-persistent"] = "persistent",
        *,
        include_system_topic: bool | None = None,
    ) -> List[str]:
        """List the partitioned topics of a namespace."""
        found: List[str] = self._ask(
            "topics.list_partitioned",
            {"namespace": namespace, "domain": domain},
            {"includeSystemTopic": include_system_topic},
        )
        return found

    def create(self, topic: str, value: Dict[str, str] | None = None) -> None:
        """Create a topic without partitions.

        The body is the properties of the topic.
        """
        self._ask("topics.create", {"topic": topic}, {}, value)

    def delete(self, topic: str, *, force: bool | None = None) -> None:
        """Delete a topic with its subscriptions and messages."""
        self._ask("topics.delete", {"topic": topic}, {"force": force})

    def get_partitions(self, topic: str, *, check_allow_auto_creation: bool | None = None) -> PartitionedTopicMetadata:
        """Show how many partitions a topic has."""
        found: PartitionedTopicMetadata = self._ask(
            "topics.get_partitions", {"topic": topic}, {"checkAllowAutoCreation": check_allow_auto_creation}
        )
        return found

    def create_partitioned(self, topic: str, value: int | PartitionedTopicMetadata) -> None:
        """Create a partitioned topic."""
        self._ask("topics.create_partitioned", {"topic": topic}, {}, value)

    def update_partitions(self, topic: str, value: int) -> None:
        """Add partitions to a topic.

        The body is how many there are afterwards; there are never fewer than before.
        """
        self._ask("topics.update_partitions", {"topic": topic}, {}, value)

    def delete_partitioned(self, topic: str, *, force: bool | None = None) -> None:
        """Delete a partitioned topic."""
        self._ask("topics.delete_partitioned", {"topic": topic}, {"force": force})

    def create_missed_partitions(self, topic: str) -> None:
        """Make the partitions of a topic that are missing."""
        self._ask("topics.create_missed_partitions", {"topic": topic}, {})

    def unload(self, topic: str) -> None:
        """Unload a topic; its clients come back."""
        self._ask("topics.unload", {"topic": topic}, {})

    def terminate(self, topic: str) -> MessagePlace:
        """End a topic: no message follows.

        Answers the id of the last message.
        """
        found: MessagePlace = self._ask("topics.terminate", {"topic": topic}, {})
        return found

    def terminate_partitioned(self, topic: str) -> Dict[str, MessagePlace]:
        """End all partitions of a topic."""
        found: Dict[str, MessagePlace] = self._ask("topics.terminate_partitioned", {"topic": topic}, {})
        return found

    def truncate(self, topic: str) -> None:
        """Acknowledge and delete everything that is stored."""
        self._ask("topics.truncate", {"topic": topic}, {})

    def trim(self, topic: str) -> None:
        """Delete what retention does not keep, now."""
        self._ask("topics.trim", {"topic": topic}, {})

    def get_properties(self, topic: str) -> Dict[str, str]:
        """Show the properties of a topic."""
        found: Dict[str, str] = self._ask("topics.get_properties", {"topic": topic}, {})
        return found

    def update_properties(self, topic: str, value: Dict[str, str]) -> None:
        """Add properties to a topic."""
        self._ask("topics.update_properties", {"topic": topic}, {}, value)

    def remove_properties(self, topic: str, *, key: str | None = None) -> None:
        """Remove a property of a topic, or all."""
        self._ask("topics.remove_properties", {"topic": topic}, {"key": key})

    def get_stats(
        self,
        topic: str,
        *,
        get_precise_backlog: bool | None = None,
        subscription_backlog_size: bool | None = None,
        get_earliest_time_in_backlog: bool | None = None,
        exclude_publishers: bool | None = None,
        exclude_consumers: bool | None = None,
    ) -> TopicStatistics:
        """Show statistics of a topic."""
        found: TopicStatistics = self._ask(
            "topics.get_stats",
            {"topic": topic},
            {
                "getPreciseBacklog": get_precise_backlog,
                "subscriptionBacklogSize": subscription_backlog_size,
                "getEarliestTimeInBacklog": get_earliest_time_in_backlog,
                "excludePublishers": exclude_publishers,
                "excludeConsumers": exclude_consumers,
            },
        )
        return found

    def get_internal_stats(self, topic: str) -> TopicInternalStatistics:
        """Show how a topic is stored."""
        found: TopicInternalStatistics = self._ask("topics.get_internal_stats", {"topic": topic}, {})
        return found

    def get_partitioned_stats(
        self,
        topic: str,
        *,
        get_precise_backlog: bool | None = None,
        subscription_backlog_size: bool | None = None,
        get_earliest_time_in_backlog: bool | None = None,
        exclude_publishers: bool | None = None,
        exclude_consumers: bool | None = None,
        per_partition: bool | None = None,
    ) -> PartitionedTopicStatistics:
        """Show statistics of a partitioned topic."""
        found: PartitionedTopicStatistics = self._ask(
            "topics.get_partitioned_stats",
            {"topic": topic},
            {
                "getPreciseBacklog": get_precise_backlog,
                "subscriptionBacklogSize": subscription_backlog_size,
                "getEarliestTimeInBacklog": get_earliest_time_in_backlog,
                "excludePublishers": exclude_publishers,
                "excludeConsumers": exclude_consumers,
                "perPartition": per_partition,
            },
        )
        return found

    def get_partitioned_internal_stats(self, topic: str) -> PartitionedTopicInternalStatistics:
        """Show how the partitions of a topic are stored."""
        found: PartitionedTopicInternalStatistics = self._ask(
            "topics.get_partitioned_internal_stats", {"topic": topic}, {}
        )
        return found

    def get_last_message_id(self, topic: str) -> MessagePlace:
        """Show the id of the last message."""
        found: MessagePlace = self._ask("topics.get_last_message_id", {"topic": topic}, {})
        return found

    def get_message_id_by_timestamp(self, topic: str, timestamp: int) -> MessagePlace:
        """Show the id of the first message published at or after a time."""
        found: MessagePlace = self._ask(
            "topics.get_message_id_by_timestamp", {"topic": topic, "timestamp": timestamp}, {}
        )
        return found

    def examine_message(
        self,
        topic: str,
        *,
        initial_position: Literal["earliest", "latest"] | None = None,
        message_position: int | None = None,
    ) -> PeekedMessage:
        """Show a stored message, counted from one end."""
        found: PeekedMessage = self._ask(
            "topics.examine_message",
            {"topic": topic},
            {"initialPosition": initial_position, "messagePosition": message_position},
        )
        return found

    def get_message_by_id(self, topic: str, ledger: int, entry: int) -> PeekedMessage:
        """Show the message of an id."""
        found: PeekedMessage = self._ask(
            "topics.get_message_by_id", {"topic": topic, "ledger": ledger, "entry": entry}, {}
        )
        return found

    def get_internal_info(self, topic: str) -> PartitionedManagedLedgerInfo | ManagedLedgerInfo:
        """Show the metadata of ledgers and cursors."""
        found: PartitionedManagedLedgerInfo | ManagedLedgerInfo = self._ask(
            "topics.get_internal_info", {"topic": topic}, {}
        )
        return found

    def get_offline_backlog(self, topic: str) -> OfflineTopicStatistics:
        """Count backlogs from the metadata."""
        found: OfflineTopicStatistics = self._ask("topics.get_offline_backlog", {"topic": topic}, {})
        return found

    def get_backlog_size_by_message_id(self, topic: str, value: MessagePlace) -> int:
        """Count the bytes after a message id."""
        found: int = self._ask("topics.get_backlog_size_by_message_id", {"topic": topic}, {}, value)
        return found

    def get_shadow_topics(self, topic: str) -> List[str] | None:
        """List the shadow topics of a topic."""
        found: List[str] | None = self._ask("topics.get_shadow_topics", {"topic": topic}, {})
        return found

    def set_shadow_topics(self, topic: str, value: List[str]) -> None:
        """Set the shadow topics of a topic.

        Refused, because shadow topics would stay empty.
        """
        self._ask("topics.set_shadow_topics", {"topic": topic}, {}, value)

    def remove_shadow_topics(self, topic: str) -> None:
        """Remove the shadow topics of a topic."""
        self._ask("topics.remove_shadow_topics", {"topic": topic}, {})

    def publish(self, topic: str, value: ProducerMessages) -> PublishedMessages:
        """Publish messages."""
        found: PublishedMessages = self._ask("topics.publish", {"topic": topic}, {}, value)
        return found

    def publish_to_partition(self, topic: str, partition: int, value: ProducerMessages) -> PublishedMessages:
        """Publish messages to a partition."""
        found: PublishedMessages = self._ask(
            "topics.publish_to_partition", {"topic": topic, "partition": partition}, {}, value
        )
        return found

    def list_of_bundle(self, namespace: str, bundle: str) -> List[str]:
        """List the non-persistent topics of a bundle."""
        found: List[str] = self._ask("topics.list_of_bundle", {"namespace": namespace, "bundle": bundle}, {})
        return found

    def trigger_compaction(self, topic: str) -> None:
        """Begin a run of compaction."""
        self._ask("topics.trigger_compaction", {"topic": topic}, {})

    def get_compaction_status(self, topic: str) -> LongRunningProcessStatus:
        """Show the last run of compaction."""
        found: LongRunningProcessStatus = self._ask("topics.get_compaction_status", {"topic": topic}, {})
        return found

    def plan_compaction(self, topic: str) -> CompactionPlanFacts:
        """Show what a job that compacts must read. magnetar's own."""
        found: CompactionPlanFacts = self._ask("topics.plan_compaction", {"topic": topic}, {})
        return found

    def adopt_compaction(self, topic: str, value: CompactedFiles) -> None:
        """Take over what a compaction job computed. magnetar's own."""
        self._ask("topics.adopt_compaction", {"topic": topic}, {}, value)

    def trigger_offload(self, topic: str, value: MessagePlace) -> None:
        """Copy ledgers before a message id to the object store."""
        self._ask("topics.trigger_offload", {"topic": topic}, {}, value)

    def get_offload_status(self, topic: str) -> OffloadProcessStatus:
        """Show the last run of offloading."""
        found: OffloadProcessStatus = self._ask("topics.get_offload_status", {"topic": topic}, {})
        return found

    def list_offloadable_ledgers(self, topic: str) -> LedgersToOffload:
        """List ledgers with their copies. magnetar's own."""
        found: LedgersToOffload = self._ask("topics.list_offloadable_ledgers", {"topic": topic}, {})
        return found

    def adopt_offloaded_ledger(self, topic: str, ledger: int, value: ObjectName) -> LedgerCopy:
        """Take over a copy that a job wrote. magnetar's own."""
        found: LedgerCopy = self._ask("topics.adopt_offloaded_ledger", {"topic": topic, "ledger": ledger}, {}, value)
        return found


class TopicPoliciesGroup:
    """Policies of single topics."""

    def __init__(self, transport: BlockingTransport) -> None:
        self._ask = transport.ask

    def get_auto_subscription_creation(
        self, topic: str, *, applied: bool | None = None, is_global: bool | None = None
    ) -> AutoSubscriptionCreationOverride | None:
        """Show whether subscriptions are created by consumers of a topic.

        An answer without a body: it is not set.
        """
        found: AutoSubscriptionCreationOverride | None = self._ask(
            "topic_policies.get_auto_subscription_creation",
            {"topic": topic},
            {"applied": applied, "isGlobal": is_global},
        )
        return found

    def set_auto_subscription_creation(
        self, topic: str, value: AutoSubscriptionCreationOverride, *, is_global: bool | None = None
    ) -> None:
        """Set whether subscriptions are created by consumers of a topic."""
        self._ask("topic_policies.set_auto_subscription_creation", {"topic": topic}, {"isGlobal": is_global}, value)

    def remove_auto_subscription_creation(self, topic: str, *, is_global: bool | None = None) -> None:
        """Remove whether subscriptions are created by consumers from a topic."""
        self._ask("topic_policies.remove_auto_subscription_creation", {"topic": topic}, {"isGlobal": is_global})

    def get_compaction_threshold(
        self, topic: str, *, applied: bool | None = None, is_global: bool | None = None
    ) -> int | None:
        """Show the bytes after which it is compacted of a topic.

        An answer without a body: it is not set.
        """
        found: int | None = self._ask(
            "topic_policies.get_compaction_threshold", {"topic": topic}, {"applied": applied, "isGlobal": is_global}
        )
        return found

    def set_compaction_threshold(self, topic: str, value: int, *, is_global: bool | None = None) -> None:
        """Set the bytes after which it is compacted of a topic."""
        self._ask("topic_policies.set_compaction_threshold", {"topic": topic}, {"isGlobal": is_global}, value)

    def remove_compaction_threshold(self, topic: str, *, is_global: bool | None = None) -> None:
        """Remove the bytes after which it is compacted from a topic."""
        self._ask("topic_policies.remove_compaction_threshold", {"topic": topic}, {"isGlobal": is_global})

    def get_deduplication_enabled(
        self, topic: str, *, applied: bool | None = None, is_global: bool | None = None
    ) -> bool | None:
        """Show whether messages are stored once however often they are sent of a topic.

        An answer without a body: it is not set.
        """
        found: bool | None = self._ask(
            "topic_policies.get_deduplication_enabled", {"topic": topic}, {"applied": applied, "isGlobal": is_global}
        )
        return found

    def set_deduplication_enabled(self, topic: str, value: bool, *, is_global: bool | None = None) -> None:
        """Set whether messages are stored once however often they are sent of a topic."""
        self._ask("topic_policies.set_deduplication_enabled", {"topic": topic}, {"isGlobal": is_global}, value)

    def remove_deduplication_enabled(self, topic: str, *, is_global: bool | None = None) -> None:
        """Remove whether messages are stored once however often they are sent from a topic."""
        self._ask("topic_policies.remove_deduplication_enabled", {"topic": topic}, {"isGlobal": is_global})

    def get_deduplication_snapshot_interval(
        self, topic: str, *, applied: bool | None = None, is_global: bool | None = None
    ) -> int | None:
        """Show the seconds between two snapshots of deduplication of a topic.

        An answer without a body: it is not set.
        """
        found: int | None = self._ask(
            "topic_policies.get_deduplication_snapshot_interval",
            {"topic": topic},
            {"applied": applied, "isGlobal": is_global},
        )
        return found

    def set_deduplication_snapshot_interval(self, topic: str, value: int, *, is_global: bool | None = None) -> None:
        """Set the seconds between two snapshots of deduplication of a topic."""
        self._ask(
            "topic_policies.set_deduplication_snapshot_interval", {"topic": topic}, {"isGlobal": is_global}, value
        )

    def remove_deduplication_snapshot_interval(self, topic: str, *, is_global: bool | None = None) -> None:
        """Remove the seconds between two snapshots of deduplication from a topic."""
        self._ask("topic_policies.remove_deduplication_snapshot_interval", {"topic": topic}, {"isGlobal": is_global})

    def get_delayed_delivery(
        self, topic: str, *, applied: bool | None = None, is_global: bool | None = None
    ) -> DelayedDeliveryPolicies | None:
        """Show delayed delivery of a topic.

        An answer without a body: it is not set.
        """
        found: DelayedDeliveryPolicies | None = self._ask(
            "topic_policies.get_delayed_delivery", {"topic": topic}, {"applied": applied, "isGlobal": is_global}
        )
        return found

    def set_delayed_delivery(
        self, topic: str, value: DelayedDeliveryPolicies, *, is_global: bool | None = None
    ) -> None:
        """Set delayed delivery of a topic."""
        self._ask("topic_policies.set_delayed_delivery", {"topic": topic}, {"isGlobal": is_global}, value)

    def remove_delayed_delivery(self, topic: str, *, is_global: bool | None = None) -> None:
        """Remove delayed delivery from a topic."""
        self._ask("topic_policies.remove_delayed_delivery", {"topic": topic}, {"isGlobal": is_global})

    def get_dispatch_rate(
        self, topic: str, *, applied: bool | None = None, is_global: bool | None = None
    ) -> DispatchRateLimit | None:
        """Show the dispatch rate of a topic.

        An answer without a body: it is not set.
        """
        found: DispatchRateLimit | None = self._ask(
            "topic_policies.get_dispatch_rate", {"topic": topic}, {"applied": applied, "isGlobal": is_global}
        )
        return found

    def set_dispatch_rate(self, topic: str, value: DispatchRateLimit, *, is_global: bool | None = None) -> None:
        """Set the dispatch rate of a topic."""
        self._ask("topic_policies.set_dispatch_rate", {"topic": topic}, {"isGlobal": is_global}, value)

    def remove_dispatch_rate(self, topic: str, *, is_global: bool | None = None) -> None:
        """Remove the dispatch rate from a topic."""
        self._ask("topic_policies.remove_dispatch_rate", {"topic": topic}, {"isGlobal": is_global})

    def get_dispatcher_pause_on_ack_state_persistent(
        self, topic: str, *, applied: bool | None = None, is_global: bool | None = None
    ) -> bool:
        """Show whether dispatch waits while acknowledgements are stored of a topic."""
        found: bool = self._ask(
            "topic_policies.get_dispatcher_pause_on_ack_state_persistent",
            {"topic": topic},
            {"applied": applied, "isGlobal": is_global},
        )
        return found

    def set_dispatcher_pause_on_ack_state_persistent(self, topic: str, *, is_global: bool | None = None) -> None:
        """Set whether dispatch waits while acknowledgements are stored of a topic."""
        self._ask(
            "topic_policies.set_dispatcher_pause_on_ack_state_persistent", {"topic": topic}, {"isGlobal": is_global}
        )

    def remove_dispatcher_pause_on_ack_state_persistent(self, topic: str, *, is_global: bool | None = None) -> None:
        """Remove whether dispatch waits while acknowledgements are stored from a topic."""
        self._ask(
            "topic_policies.remove_dispatcher_pause_on_ack_state_persistent", {"topic": topic}, {"isGlobal": is_global}
        )

    def get_entry_filters(
        self, topic: str, *, applied: bool | None = None, is_global: bool | None = None
    ) -> EntryFilters | None:
        """Show the entry filters of a topic.

        An answer without a body: it is not set.
        """
        found: EntryFilters | None = self._ask(
            "topic_policies.get_entry_filters", {"topic": topic}, {"applied": applied, "isGlobal": is_global}
        )
        return found

    def set_entry_filters(self, topic: str, value: EntryFilters, *, is_global: bool | None = None) -> None:
        """Set the entry filters of a topic."""
        self._ask("topic_policies.set_entry_filters", {"topic": topic}, {"isGlobal": is_global}, value)

    def remove_entry_filters(self, topic: str, *, is_global: bool | None = None) -> None:
        """Remove the entry filters from a topic."""
        self._ask("topic_policies.remove_entry_filters", {"topic": topic}, {"isGlobal": is_global})

    def get_inactive_topic_policies(
        self, topic: str, *, applied: bool | None = None, is_global: bool | None = None
    ) -> InactiveTopicPolicies | None:
        """Show when it is deleted because it is unused of a topic.

        An answer without a body: it is not set.
        """
        found: InactiveTopicPolicies | None = self._ask(
            "topic_policies.get_inactive_topic_policies", {"topic": topic}, {"applied": applied, "isGlobal": is_global}
        )
        return found

    def set_inactive_topic_policies(
        self, topic: str, value: InactiveTopicPolicies, *, is_global: bool | None = None
    ) -> None:
        """Set when it is deleted because it is unused of a topic."""
        self._ask("topic_policies.set_inactive_topic_policies", {"topic": topic}, {"isGlobal": is_global}, value)

    def remove_inactive_topic_policies(self, topic: str, *, is_global: bool | None = None) -> None:
        """Remove when it is deleted because it is unused from a topic."""
        self._ask("topic_policies.remove_inactive_topic_policies", {"topic": topic}, {"isGlobal": is_global})

    def get_max_consumers(
        self, topic: str, *, applied: bool | None = None, is_global: bool | None = None
    ) -> int | None:
        """Show the most consumers of a topic.

        An answer without a body: it is not set.
        """
        found: int | None = self._ask(
            "topic_policies.get_max_consumers", {"topic": topic}, {"applied": applied, "isGlobal": is_global}
        )
        return found

    def set_max_consumers(self, topic: str, value: int, *, is_global: bool | None = None) -> None:
        """Set the most consumers of a topic."""
        self._ask("topic_policies.set_max_consumers", {"topic": topic}, {"isGlobal": is_global}, value)

    def remove_max_consumers(self, topic: str, *, is_global: bool | None = None) -> None:
        """Remove the most consumers from a topic."""
        self._ask("topic_policies.remove_max_consumers", {"topic": topic}, {"isGlobal": is_global})

    def get_max_consumers_per_subscription(self, topic: str, *, is_global: bool | None = None) -> int | None:
        """Show the most consumers of a subscription of a topic.

        An answer without a body: it is not set.
        """
        found: int | None = self._ask(
            "topic_policies.get_max_consumers_per_subscription", {"topic": topic}, {"isGlobal": is_global}
        )
        return found

    def set_max_consumers_per_subscription(self, topic: str, value: int, *, is_global: bool | None = None) -> None:
        """Set the most consumers of a subscription of a topic."""
        self._ask("topic_policies.set_max_consumers_per_subscription", {"topic": topic}, {"isGlobal": is_global}, value)

    def remove_max_consumers_per_subscription(self, topic: str, *, is_global: bool | None = None) -> None:
        """Remove the most consumers of a subscription from a topic."""
        self._ask("topic_policies.remove_max_consumers_per_subscription", {"topic": topic}, {"isGlobal": is_global})

    def get_max_message_size(self, topic: str, *, is_global: bool | None = None) -> int | None:
        """Show the most bytes of a message of a topic.

        An answer without a body: it is not set.
        """
        found: int | None = self._ask("topic_policies.get_max_message_size", {"topic": topic}, {"isGlobal": is_global})
        return found

    def set_max_message_size(self, topic: str, value: int, *, is_global: bool | None = None) -> None:
        """Set the most bytes of a message of a topic."""
        self._ask("topic_policies.set_max_message_size", {"topic": topic}, {"isGlobal": is_global}, value)

    def remove_max_message_size(self, topic: str, *, is_global: bool | None = None) -> None:
        """Remove the most bytes of a message from a topic."""
        self._ask("topic_policies.remove_max_message_size", {"topic": topic}, {"isGlobal": is_global})

    def get_max_producers(
        self, topic: str, *, applied: bool | None = None, is_global: bool | None = None
    ) -> int | None:
        """Show the most producers of a topic.

        An answer without a body: it is not set.
        """
        found: int | None = self._ask(
            "topic_policies.get_max_producers", {"topic": topic}, {"applied": applied, "isGlobal": is_global}
        )
        return found

    def set_max_producers(self, topic: str, value: int, *, is_global: bool | None = None) -> None:
        """Set the most producers of a topic."""
        self._ask("topic_policies.set_max_producers", {"topic": topic}, {"isGlobal": is_global}, value)

    def remove_max_producers(self, topic: str, *, is_global: bool | None = None) -> None:
        """Remove the most producers from a topic."""
        self._ask("topic_policies.remove_max_producers", {"topic": topic}, {"isGlobal": is_global})

    def get_max_subscriptions_per_topic(self, topic: str, *, is_global: bool | None = None) -> int | None:
        """Show the most subscriptions of a topic.

        An answer without a body: it is not set.
        """
        found: int | None = self._ask(
            "topic_policies.get_max_subscriptions_per_topic", {"topic": topic}, {"isGlobal": is_global}
        )
        return found

    def set_max_subscriptions_per_topic(self, topic: str, value: int, *, is_global: bool | None = None) -> None:
        """Set the most subscriptions of a topic."""
        self._ask("topic_policies.set_max_subscriptions_per_topic", {"topic": topic}, {"isGlobal": is_global}, value)

    def remove_max_subscriptions_per_topic(self, topic: str, *, is_global: bool | None = None) -> None:
        """Remove the most subscriptions from a topic."""
        self._ask("topic_policies.remove_max_subscriptions_per_topic", {"topic": topic}, {"isGlobal": is_global})

    def get_max_unacked_messages_on_consumer(
        self, topic: str, *, applied: bool | None = None, is_global: bool | None = None
    ) -> int | None:
        """Show the most unacknowledged messages of a consumer of a topic.

        An answer without a body: it is not set.
        """
        found: int | None = self._ask(
            "topic_policies.get_max_unacked_messages_on_consumer",
            {"topic": topic},
            {"applied": applied, "isGlobal": is_global},
        )
        return found

    def set_max_unacked_messages_on_consumer(self, topic: str, value: int, *, is_global: bool | None = None) -> None:
        """Set the most unacknowledged messages of a consumer of a topic."""
        self._ask(
            "topic_policies.set_max_unacked_messages_on_consumer", {"topic": topic}, {"isGlobal": is_global}, value
        )

    def remove_max_unacked_messages_on_consumer(self, topic: str, *, is_global: bool | None = None) -> None:
        """Remove the most unacknowledged messages of a consumer from a topic."""
        self._ask("topic_policies.remove_max_unacked_messages_on_consumer", {"topic": topic}, {"isGlobal": is_global})

    def get_max_unacked_messages_on_subscription(
        self, topic: str, *, applied: bool | None = None, is_global: bool | None = None
    ) -> int | None:
        """Show the most unacknowledged messages of a subscription of a topic.

        An answer without a body: it is not set.
        """
        found: int | None = self._ask(
            "topic_policies.get_max_unacked_messages_on_subscription",
            {"topic": topic},
            {"applied": applied, "isGlobal": is_global},
        )
        return found

    def set_max_unacked_messages_on_subscription(
        self, topic: str, value: int, *, is_global: bool | None = None
    ) -> None:
        """Set the most unacknowledged messages of a subscription of a topic."""
        self._ask(
            "topic_policies.set_max_unacked_messages_on_subscription", {"topic": topic}, {"isGlobal": is_global}, value
        )

    def remove_max_unacked_messages_on_subscription(self, topic: str, *, is_global: bool | None = None) -> None:
        """Remove the most unacknowledged messages of a subscription from a topic."""
        self._ask(
            "topic_policies.remove_max_unacked_messages_on_subscription", {"topic": topic}, {"isGlobal": is_global}
        )

    def get_offload_policies(
        self, topic: str, *, applied: bool | None = None, is_global: bool | None = None
    ) -> OffloadPolicies | None:
        """Show when ledgers are offloaded of a topic.

        An answer without a body: it is not set.
        """
        found: OffloadPolicies | None = self._ask(
            "topic_policies.get_offload_policies", {"topic": topic}, {"applied": applied, "isGlobal": is_global}
        )
        return found

    def set_offload_policies(self, topic: str, value: OffloadPolicies, *, is_global: bool | None = None) -> None:
        """Set when ledgers are offloaded of a topic."""
        self._ask("topic_policies.set_offload_policies", {"topic": topic}, {"isGlobal": is_global}, value)

    def remove_offload_policies(self, topic: str, *, is_global: bool | None = None) -> None:
        """Remove when ledgers are offloaded from a topic."""
        self._ask("topic_policies.remove_offload_policies", {"topic": topic}, {"isGlobal": is_global})

    def get_persistence(
        self, topic: str, *, applied: bool | None = None, is_global: bool | None = None
    ) -> PersistencePolicies | None:
        """Show the copies in Apache BookKeeper of a topic.

        An answer without a body: it is not set.
        """
        found: PersistencePolicies | None = self._ask(
            "topic_policies.get_persistence", {"topic": topic}, {"applied": applied, "isGlobal": is_global}
        )
        return found

    def set_persistence(self, topic: str, value: PersistencePolicies, *, is_global: bool | None = None) -> None:
        """Set the copies in Apache BookKeeper of a topic."""
        self._ask("topic_policies.set_persistence", {"topic": topic}, {"isGlobal": is_global}, value)

    def remove_persistence(self, topic: str, *, is_global: bool | None = None) -> None:
        """Remove the copies in Apache BookKeeper from a topic."""
        self._ask("topic_policies.remove_persistence", {"topic": topic}, {"isGlobal": is_global})

    def get_publish_rate(self, topic: str, *, is_global: bool | None = None) -> PublishRateLimit | None:
        """Show the publish rate of a topic.

        An answer without a body: it is not set.
        """
        found: PublishRateLimit | None = self._ask(
            "topic_policies.get_publish_rate", {"topic": topic}, {"isGlobal": is_global}
        )
        return found

    def set_publish_rate(self, topic: str, value: PublishRateLimit, *, is_global: bool | None = None) -> None:
        """Set the publish rate of a topic."""
        self._ask("topic_policies.set_publish_rate", {"topic": topic}, {"isGlobal": is_global}, value)

    def remove_publish_rate(self, topic: str, *, is_global: bool | None = None) -> None:
        """Remove the publish rate from a topic."""
        self._ask("topic_policies.remove_publish_rate", {"topic": topic}, {"isGlobal": is_global})

    def get_replication(
        self, topic: str, *, applied: bool | None = None, is_global: bool | None = None
    ) -> List[str] | None:
        """Show the clusters of a topic.

        An answer without a body: it is not set.
        """
        found: List[str] | None = self._ask(
            "topic_policies.get_replication", {"topic": topic}, {"applied": applied, "isGlobal": is_global}
        )
        return found

    def set_replication(self, topic: str, value: List[str], *, is_global: bool | None = None) -> None:
        """Set the clusters of a topic."""
        self._ask("topic_policies.set_replication", {"topic": topic}, {"isGlobal": is_global}, value)

    def remove_replication(self, topic: str, *, is_global: bool | None = None) -> None:
        """Remove the clusters from a topic."""
        self._ask("topic_policies.remove_replication", {"topic": topic}, {"isGlobal": is_global})

    def get_replicator_dispatch_rate(
        self, topic: str, *, applied: bool | None = None, is_global: bool | None = None
    ) -> DispatchRateLimit | None:
        """Show the rate of replication of a topic.

        An answer without a body: it is not set.
        """
        found: DispatchRateLimit | None = self._ask(
            "topic_policies.get_replicator_dispatch_rate", {"topic": topic}, {"applied": applied, "isGlobal": is_global}
        )
        return found

    def set_replicator_dispatch_rate(
        self, topic: str, value: DispatchRateLimit, *, is_global: bool | None = None
    ) -> None:
        """Set the rate of replication of a topic."""
        self._ask("topic_policies.set_replicator_dispatch_rate", {"topic": topic}, {"isGlobal": is_global}, value)

    def remove_replicator_dispatch_rate(self, topic: str, *, is_global: bool | None = None) -> None:
        """Remove the rate of replication from a topic."""
        self._ask("topic_policies.remove_replicator_dispatch_rate", {"topic": topic}, {"isGlobal": is_global})

    def get_retention(
        self, topic: str, *, applied: bool | None = None, is_global: bool | None = None
    ) -> RetentionPolicies | None:
        """Show how long acknowledged messages are kept of a topic.

        An answer without a body: it is not set.
        """
        found: RetentionPolicies | None = self._ask(
            "topic_policies.get_retention", {"topic": topic}, {"applied": applied, "isGlobal": is_global}
        )
        return found

    def set_retention(self, topic: str, value: RetentionPolicies, *, is_global: bool | None = None) -> None:
        """Set how long acknowledged messages are kept of a topic."""
        self._ask("topic_policies.set_retention", {"topic": topic}, {"isGlobal": is_global}, value)

    def remove_retention(self, topic: str, *, is_global: bool | None = None) -> None:
        """Remove how long acknowledged messages are kept from a topic."""
        self._ask("topic_policies.remove_retention", {"topic": topic}, {"isGlobal": is_global})

    def get_schema_compatibility_strategy(
        self, topic: str, *, applied: bool | None = None, is_global: bool | None = None
    ) -> (
        Literal[
            "UNDEFINED",
            "ALWAYS_INCOMPATIBLE",
            "ALWAYS_COMPATIBLE",
            "BACKWARD",
            "FORWARD",
            "FULL",
            "BACKWARD_TRANSITIVE",
            "FORWARD_TRANSITIVE",
            "FULL_TRANSITIVE",
        ]
        | None
    ):
        """Show how new schemas must fit earlier ones of a topic.

        An answer without a body: it is not set.
        """
        found: (
            Literal[
                "UNDEFINED",
                "ALWAYS_INCOMPATIBLE",
                "ALWAYS_COMPATIBLE",
                "BACKWARD",
                "FORWARD",
                "FULL",
                "BACKWARD_TRANSITIVE",
                "FORWARD_TRANSITIVE",
                "FULL_TRANSITIVE",
            ]
            | None
        ) = self._ask(
            "topic_policies.get_schema_compatibility_strategy",
            {"topic": topic},
            {"applied": applied, "isGlobal": is_global},
        )
        return found

    def set_schema_compatibility_strategy(
        self,
        topic: str,
        value: Literal[
            "UNDEFINED",
            "ALWAYS_INCOMPATIBLE",
            "ALWAYS_COMPATIBLE",
            "BACKWARD",
            "FORWARD",
            "FULL",
            "BACKWARD_TRANSITIVE",
            "FORWARD_TRANSITIVE",
            "FULL_TRANSITIVE",
        ],
        *,
        is_global: bool | None = None,
    ) -> None:
        """Set how new schemas must fit earlier ones of a topic."""
        self._ask("topic_policies.set_schema_compatibility_strategy", {"topic": topic}, {"isGlobal": is_global}, value)

    def remove_schema_compatibility_strategy(self, topic: str, *, is_global: bool | None = None) -> None:
        """Remove how new schemas must fit earlier ones from a topic."""
        self._ask("topic_policies.remove_schema_compatibility_strategy", {"topic": topic}, {"isGlobal": is_global})

    def get_schema_validation_enforced(
        self, topic: str, *, applied: bool | None = None, is_global: bool | None = None
    ) -> bool:
        """Show whether producers must have a schema of a topic."""
        found: bool = self._ask(
            "topic_policies.get_schema_validation_enforced",
            {"topic": topic},
            {"applied": applied, "isGlobal": is_global},
        )
        return found

    def set_schema_validation_enforced(self, topic: str, value: bool, *, is_global: bool | None = None) -> None:
        """Set whether producers must have a schema of a topic."""
        self._ask("topic_policies.set_schema_validation_enforced", {"topic": topic}, {"isGlobal": is_global}, value)

    def get_subscribe_rate(
        self, topic: str, *, applied: bool | None = None, is_global: bool | None = None
    ) -> SubscribeRateLimit | None:
        """Show how often a consumer may connect of a topic.

        An answer without a body: it is not set.
        """
        found: SubscribeRateLimit | None = self._ask(
            "topic_policies.get_subscribe_rate", {"topic": topic}, {"applied": applied, "isGlobal": is_global}
        )
        return found

    def set_subscribe_rate(self, topic: str, value: SubscribeRateLimit, *, is_global: bool | None = None) -> None:
        """Set how often a consumer may connect of a topic."""
        self._ask("topic_policies.set_subscribe_rate", {"topic": topic}, {"isGlobal": is_global}, value)

    def remove_subscribe_rate(self, topic: str, *, is_global: bool | None = None) -> None:
        """Remove how often a consumer may connect from a topic."""
        self._ask("topic_policies.remove_subscribe_rate", {"topic": topic}, {"isGlobal": is_global})

    def get_subscription_dispatch_rate(
        self, topic: str, *, applied: bool | None = None, is_global: bool | None = None
    ) -> DispatchRateLimit | None:
        """Show the dispatch rate of each subscription of a topic.

        An answer without a body: it is not set.
        """
        found: DispatchRateLimit | None = self._ask(
            "topic_policies.get_subscription_dispatch_rate",
            {"topic": topic},
            {"applied": applied, "isGlobal": is_global},
        )
        return found

    def set_subscription_dispatch_rate(
        self, topic: str, value: DispatchRateLimit, *, is_global: bool | None = None
    ) -> None:
        """Set the dispatch rate of each subscription of a topic."""
        self._ask("topic_policies.set_subscription_dispatch_rate", {"topic": topic}, {"isGlobal": is_global}, value)

    def remove_subscription_dispatch_rate(self, topic: str, *, is_global: bool | None = None) -> None:
        """Remove the dispatch rate of each subscription from a topic."""
        self._ask("topic_policies.remove_subscription_dispatch_rate", {"topic": topic}, {"isGlobal": is_global})

    def get_subscription_types_enabled(
        self, topic: str, *, is_global: bool | None = None
    ) -> List[Literal["Exclusive", "Shared", "Failover", "Key_Shared"]] | None:
        """Show the types of subscriptions that are allowed of a topic.

        An answer without a body: it is not set.
        """
        found: List[Literal["Exclusive", "Shared", "Failover", "Key_Shared"]] | None = self._ask(
            "topic_policies.get_subscription_types_enabled", {"topic": topic}, {"isGlobal": is_global}
        )
        return found

    def set_subscription_types_enabled(
        self,
        topic: str,
        value: List[Literal["Exclusive", "Shared", "Failover", "Key_Shared"]],
        *,
        is_global: bool | None = None,
    ) -> None:
        """Set the types of subscriptions that are allowed of a topic."""
        self._ask("topic_policies.set_subscription_types_enabled", {"topic": topic}, {"isGlobal": is_global}, value)

    def remove_subscription_types_enabled(self, topic: str, *, is_global: bool | None = None) -> None:
        """Remove the types of subscriptions that are allowed from a topic."""
        self._ask("topic_policies.remove_subscription_types_enabled", {"topic": topic}, {"isGlobal": is_global})

    def get_message_ttl(self, topic: str, *, applied: bool | None = None, is_global: bool | None = None) -> int | None:
        """Show the seconds after which unacknowledged messages of a topic expire."""
        found: int | None = self._ask(
            "topic_policies.get_message_ttl", {"topic": topic}, {"applied": applied, "isGlobal": is_global}
        )
        return found

    def set_message_ttl(self, topic: str, *, message_ttl: int, is_global: bool | None = None) -> None:
        """Set the seconds after which unacknowledged messages of a topic expire."""
        self._ask(
            "topic_policies.set_message_ttl", {"topic": topic}, {"messageTTL": message_ttl, "isGlobal": is_global}
        )

    def remove_message_ttl(self, topic: str, *, is_global: bool | None = None) -> None:
        """Remove the seconds after which unacknowledged messages expire from a topic."""
        self._ask("topic_policies.remove_message_ttl", {"topic": topic}, {"isGlobal": is_global})

    def remove_all(self, topic: str) -> None:
        """Remove all policies of a topic."""
        self._ask("topic_policies.remove_all", {"topic": topic}, {})

    def get_backlog_quotas(
        self, topic: str, *, applied: bool | None = None, is_global: bool | None = None
    ) -> Dict[str, BacklogQuotaLimit]:
        """Show the backlog quotas of a topic."""
        found: Dict[str, BacklogQuotaLimit] = self._ask(
            "topic_policies.get_backlog_quotas", {"topic": topic}, {"applied": applied, "isGlobal": is_global}
        )
        return found

    def set_backlog_quota(
        self,
        topic: str,
        value: BacklogQuotaLimit,
        *,
        backlog_quota_type: Literal["destination_storage", "message_age"] | None = None,
        is_global: bool | None = None,
    ) -> None:
        """Set a backlog quota of a topic."""
        self._ask(
            "topic_policies.set_backlog_quota",
            {"topic": topic},
            {"backlogQuotaType": backlog_quota_type, "isGlobal": is_global},
            value,
        )

    def remove_backlog_quota(
        self,
        topic: str,
        *,
        backlog_quota_type: Literal["destination_storage", "message_age"] | None = None,
        is_global: bool | None = None,
    ) -> None:
        """Remove a backlog quota from a topic."""
        self._ask(
            "topic_policies.remove_backlog_quota",
            {"topic": topic},
            {"backlogQuotaType": backlog_quota_type, "isGlobal": is_global},
        )

    def get_dispatch_rate_of_subscription(
        self, topic: str, subscription: str, *, applied: bool | None = None, is_global: bool | None = None
    ) -> DispatchRateLimit | None:
        """Show the dispatch rate of one subscription."""
        found: DispatchRateLimit | None = self._ask(
            "topic_policies.get_dispatch_rate_of_subscription",
            {"topic": topic, "subscription": subscription},
            {"applied": applied, "isGlobal": is_global},
        )
        return found

    def set_dispatch_rate_of_subscription(
        self, topic: str, subscription: str, value: DispatchRateLimit, *, is_global: bool | None = None
    ) -> None:
        """Set the dispatch rate of one subscription."""
        self._ask(
            "topic_policies.set_dispatch_rate_of_subscription",
            {"topic": topic, "subscription": subscription},
            {"isGlobal": is_global},
            value,
        )

    def remove_dispatch_rate_of_subscription(
        self, topic: str, subscription: str, *, is_global: bool | None = None
    ) -> None:
        """Remove the dispatch rate of one subscription."""
        self._ask(
            "topic_policies.remove_dispatch_rate_of_subscription",
            {"topic": topic, "subscription": subscription},
            {"isGlobal": is_global},
        )


class SubscriptionsGroup:
    """Subscriptions, their cursors and backlogs."""

    def __init__(self, transport: BlockingTransport) -> None:
        self._ask = transport.ask

    def list(self, topic: str) -> List[str]:
        """List the subscriptions of a topic."""
        found: List[str] = self._ask("subscriptions.list", {"topic": topic}, {})
        return found

    def create(
        self,
        topic: str,
        subscription: str,
        value: Literal["earliest", "latest"] | SubscriptionStart | None = None,
        *,
        replicated: bool | None = None,
    ) -> None:
        """Create a subscription.

        Without a body it begins after the last message. A missing topic is created.
        """
        self._ask(
            "subscriptions.create", {"topic": topic, "subscription": subscription}, {"replicated": replicated}, value
        )

    def delete(self, topic: str, subscription: str, *, force: bool | None = None) -> None:
        """Delete a subscription."""
        self._ask("subscriptions.delete", {"topic": topic, "subscription": subscription}, {"force": force})

    def get_properties(self, topic: str, subscription: str) -> Dict[str, str]:
        """Show the properties of a subscription."""
        found: Dict[str, str] = self._ask(
            "subscriptions.get_properties", {"topic": topic, "subscription": subscription}, {}
        )
        return found

    def set_properties(self, topic: str, subscription: str, value: Dict[str, str]) -> None:
        """Replace the properties of a subscription."""
        self._ask("subscriptions.set_properties", {"topic": topic, "subscription": subscription}, {}, value)

    def get_replicated(self, topic: str, subscription: str) -> Dict[str, bool]:
        """Say whether the state of a subscription is for other clusters.

        By topic or partition.
        """
        found: Dict[str, bool] = self._ask(
            "subscriptions.get_replicated", {"topic": topic, "subscription": subscription}, {}
        )
        return found

    def set_replicated(self, topic: str, subscription: str, value: bool) -> None:
        """Set whether the state of a subscription is for other clusters."""
        self._ask("subscriptions.set_replicated", {"topic": topic, "subscription": subscription}, {}, value)

    def skip_all_messages(self, topic: str, subscription: str) -> None:
        """Acknowledge everything."""
        self._ask("subscriptions.skip_all_messages", {"topic": topic, "subscription": subscription}, {})

    def skip_messages(self, topic: str, subscription: str, count: int) -> None:
        """Acknowledge the next messages."""
        self._ask("subscriptions.skip_messages", {"topic": topic, "subscription": subscription, "count": count}, {})

    def skip_unreadable(self, topic: str, subscription: str) -> SkippedEntries:
        """Skip the damaged entries that a subscription waits for. magnetar's own."""
        found: SkippedEntries = self._ask(
            "subscriptions.skip_unreadable", {"topic": topic, "subscription": subscription}, {}
        )
        return found

    def expire_messages(self, topic: str, subscription: str, seconds: int) -> None:
        """Acknowledge messages that are older."""
        self._ask(
            "subscriptions.expire_messages", {"topic": topic, "subscription": subscription, "seconds": seconds}, {}
        )

    def expire_messages_by_id(
        self, topic: str, subscription: str, value: ResetCursorData | Literal["earliest", "latest"]
    ) -> None:
        """Acknowledge messages up to a message id."""
        self._ask("subscriptions.expire_messages_by_id", {"topic": topic, "subscription": subscription}, {}, value)

    def expire_messages_of_all(self, topic: str, seconds: int) -> None:
        """Acknowledge messages that are older, on all subscriptions of a topic."""
        self._ask("subscriptions.expire_messages_of_all", {"topic": topic, "seconds": seconds}, {})

    def reset_cursor(self, topic: str, subscription: str, timestamp: int) -> None:
        """Move a subscription to a time."""
        self._ask(
            "subscriptions.reset_cursor", {"topic": topic, "subscription": subscription, "timestamp": timestamp}, {}
        )

    def reset_cursor_to_id(
        self, topic: str, subscription: str, value: ResetCursorData | Literal["earliest", "latest"]
    ) -> None:
        """Move a subscription to a message id."""
        self._ask("subscriptions.reset_cursor_to_id", {"topic": topic, "subscription": subscription}, {}, value)

    def peek_message(self, topic: str, subscription: str, position: int) -> PeekedMessage:
        """Show a message of a backlog."""
        found: PeekedMessage = self._ask(
            "subscriptions.peek_message", {"topic": topic, "subscription": subscription, "position": position}, {}
        )
        return found

    def analyze_backlog(
        self, topic: str, subscription: str, value: MessagePlace | Literal["earliest", "latest"] | None = None
    ) -> AnalyzeBacklogResult:
        """Count a backlog by reading it."""
        found: AnalyzeBacklogResult = self._ask(
            "subscriptions.analyze_backlog", {"topic": topic, "subscription": subscription}, {}, value
        )
        return found

    def explain(self, topic: str, subscription: str) -> SubscriptionExplanation:
        """Explain why nothing arrives. magnetar's own."""
        found: SubscriptionExplanation = self._ask(
            "subscriptions.explain", {"topic": topic, "subscription": subscription}, {}
        )
        return found

    def get_unacknowledged(
        self, topic: str, subscription: str, *, hash: int | None = None, key: str | None = None
    ) -> UnacknowledgedMessages:
        """Show the messages of a key that are out or wait. magnetar's own.

        Of Key_Shared subscriptions. Give either hash or key.
        """
        found: UnacknowledgedMessages = self._ask(
            "subscriptions.get_unacknowledged",
            {"topic": topic, "subscription": subscription},
            {"hash": hash, "key": key},
        )
        return found


class SchemasGroup:
    """Schemas of topics and their versions."""

    def __init__(self, transport: BlockingTransport) -> None:
        self._ask = transport.ask

    def get(self, topic: str) -> SchemaInfo:
        """Show the newest schema of a topic."""
        found: SchemaInfo = self._ask("schemas.get", {"topic": topic}, {})
        return found

    def get_version(self, topic: str, version: int) -> SchemaInfo:
        """Show one version of a topic's schema."""
        found: SchemaInfo = self._ask("schemas.get_version", {"topic": topic, "version": version}, {})
        return found

    def get_all(self, topic: str) -> AllSchemaVersions:
        """Show all versions of a topic's schema."""
        found: AllSchemaVersions = self._ask("schemas.get_all", {"topic": topic}, {})
        return found

    def get_metadata(self, topic: str) -> SchemaMetadata | None:
        """Show where the versions are stored."""
        found: SchemaMetadata | None = self._ask("schemas.get_metadata", {"topic": topic}, {})
        return found

    def create(self, topic: str, value: PostSchemaPayload) -> PostSchemaResponse:
        """Register a schema."""
        found: PostSchemaResponse = self._ask("schemas.create", {"topic": topic}, {}, value)
        return found

    def delete(self, topic: str, *, force: bool | None = None) -> VersionNumber:
        """Delete the schema of a topic."""
        found: VersionNumber = self._ask("schemas.delete", {"topic": topic}, {"force": force})
        return found

    def test_compatibility(self, topic: str, value: PostSchemaPayload) -> SchemaCompatibility:
        """Say whether a schema could be registered."""
        found: SchemaCompatibility = self._ask("schemas.test_compatibility", {"topic": topic}, {}, value)
        return found

    def get_version_by_schema(self, topic: str, value: PostSchemaPayload) -> VersionNumber:
        """Find the version that has a schema."""
        found: VersionNumber = self._ask("schemas.get_version_by_schema", {"topic": topic}, {}, value)
        return found


class LookupsGroup:
    """Which broker serves a topic."""

    def __init__(self, transport: BlockingTransport) -> None:
        self._ask = transport.ask

    def lookup_topic(self, topic: str, *, listener_name: str | None = None) -> LookupData:
        """Find the broker that serves a topic."""
        found: LookupData = self._ask("lookups.lookup_topic", {"topic": topic}, {"listenerName": listener_name})
        return found

    def get_bundle_range(self, topic: str) -> str:
        """Name the bundle of a topic."""
        found: str = self._ask("lookups.get_bundle_range", {"topic": topic}, {})
        return found


class TransactionsGroup:
    """Transactions and their coordinators."""

    def __init__(self, transport: BlockingTransport) -> None:
        self._ask = transport.ask

    def list_coordinators(self) -> List[CoordinatorInfo]:
        """List the coordinators."""
        found: List[CoordinatorInfo] = self._ask("transactions.list_coordinators", {}, {})
        return found

    def get_coordinator_stats(
        self, *, coordinator_id: int | None = None
    ) -> Dict[str, CoordinatorStatistics] | CoordinatorStatistics:
        """Show statistics of coordinators.

        By the coordinator's number, or of the one that is asked for.
        """
        found: Dict[str, CoordinatorStatistics] | CoordinatorStatistics = self._ask(
            "transactions.get_coordinator_stats", {}, {"coordinatorId": coordinator_id}
        )
        return found

    def get_metadata(self, most_sig_bits: int, least_sig_bits: int) -> TransactionMetadata:
        """Show a transaction."""
        found: TransactionMetadata = self._ask(
            "transactions.get_metadata", {"mostSigBits": most_sig_bits, "leastSigBits": least_sig_bits}, {}
        )
        return found

    def list_slow(self, timeout: int, *, coordinator_id: int | None = None) -> Dict[str, TransactionMetadata]:
        """Show transactions that have been open for longer."""
        found: Dict[str, TransactionMetadata] = self._ask(
            "transactions.list_slow", {"timeout": timeout}, {"coordinatorId": coordinator_id}
        )
        return found

    def abort(self, most_sig_bits: int, least_sig_bits: int) -> None:
        """Abort a transaction."""
        self._ask("transactions.abort", {"mostSigBits": most_sig_bits, "leastSigBits": least_sig_bits}, {})

    def get_buffer_stats(self, topic: str, *, low_water_marks: bool | None = None) -> TransactionBufferStatistics:
        """Show what a topic holds of transactions."""
        found: TransactionBufferStatistics = self._ask(
            "transactions.get_buffer_stats", {"topic": topic}, {"lowWaterMarks": low_water_marks}
        )
        return found

    def get_in_buffer_stats(self, topic: str, most_sig_bits: int, least_sig_bits: int) -> TransactionInBuffer:
        """Show what a transaction published to a topic."""
        found: TransactionInBuffer = self._ask(
            "transactions.get_in_buffer_stats",
            {"topic": topic, "mostSigBits": most_sig_bits, "leastSigBits": least_sig_bits},
            {},
        )
        return found

    def get_pending_ack_stats(
        self, topic: str, sub_name: str, *, low_water_marks: bool | None = None
    ) -> PendingAckStatistics:
        """Show what a subscription holds of transactions."""
        found: PendingAckStatistics = self._ask(
            "transactions.get_pending_ack_stats",
            {"topic": topic, "subName": sub_name},
            {"lowWaterMarks": low_water_marks},
        )
        return found

    def get_in_pending_ack_stats(
        self, topic: str, sub_name: str, most_sig_bits: int, least_sig_bits: int
    ) -> TransactionInPendingAcks:
        """Show what a transaction acknowledged on a subscription."""
        found: TransactionInPendingAcks = self._ask(
            "transactions.get_in_pending_ack_stats",
            {"topic": topic, "subName": sub_name, "mostSigBits": most_sig_bits, "leastSigBits": least_sig_bits},
            {},
        )
        return found

    def get_position_stats_in_pending_ack(
        self, topic: str, sub_name: str, ledger_id: int, entry_id: int, *, batch_index: int | None = None
    ) -> PositionInPendingAcks:
        """Say whether an open transaction has acknowledged a message."""
        found: PositionInPendingAcks = self._ask(
            "transactions.get_position_stats_in_pending_ack",
            {"topic": topic, "subName": sub_name, "ledgerId": ledger_id, "entryId": entry_id},
            {"batchIndex": batch_index},
        )
        return found

    def get_coordinator_internal_stats(self, coordinator_id: int) -> CoordinatorInternalStatistics:
        """Show how a coordinator is stored."""
        found: CoordinatorInternalStatistics = self._ask(
            "transactions.get_coordinator_internal_stats", {"coordinatorId": coordinator_id}, {}
        )
        return found

    def get_buffer_internal_stats(self, topic: str) -> BufferInternalStatistics:
        """Show how a topic's part in transactions is stored."""
        found: BufferInternalStatistics = self._ask("transactions.get_buffer_internal_stats", {"topic": topic}, {})
        return found

    def get_pending_ack_internal_stats(self, topic: str, sub_name: str) -> PendingAckInternalStatistics:
        """Show how a subscription's part in transactions is stored."""
        found: PendingAckInternalStatistics = self._ask(
            "transactions.get_pending_ack_internal_stats", {"topic": topic, "subName": sub_name}, {}
        )
        return found

    def scale_coordinators(self, value: int) -> None:
        """Set the number of coordinators.

        Refused: one serves every transaction.
        """
        self._ask("transactions.scale_coordinators", {}, {}, value)


class PermissionsGroup:
    """Why a role may do something or not."""

    def __init__(self, transport: BlockingTransport) -> None:
        self._ask = transport.ask

    def explain(
        self,
        *,
        role: str,
        operation: str,
        tenant: str | None = None,
        namespace: str | None = None,
        topic: str | None = None,
        subscription: str | None = None,
        original: str | None = None,
    ) -> PermissionExplanation:
        """Explain whether a role may do something. magnetar's own."""
        found: PermissionExplanation = self._ask(
            "permissions.explain",
            {},
            {
                "role": role,
                "operation": operation,
                "tenant": tenant,
                "namespace": namespace,
                "topic": topic,
                "subscription": subscription,
                "original": original,
            },
        )
        return found


class Groups:
    """All groups of operations."""

    def __init__(self, transport: BlockingTransport) -> None:
        self.brokers = BrokersGroup(transport)
        """Brokers: health, version, settings."""
        self.metrics = MetricsGroup(transport)
        """What the broker measures."""
        self.broker_stats = BrokerStatsGroup(transport)
        """What the broker has to do, as JSON."""
        self.clusters = ClustersGroup(transport)
        """Clusters and their addresses, failure domains and isolation policies."""
        self.bookies = BookiesGroup(transport)
        """Bookies, of which magnetar has none."""
        self.resource_groups = ResourceGroupsGroup(transport)
        """Namespaces that share rates."""
        self.resource_quotas = ResourceQuotasGroup(transport)
        """What bundles may need of a broker."""
        self.tenants = TenantsGroup(transport)
        """Tenants with their roles and clusters."""
        self.namespaces = NamespacesGroup(transport)
        """Namespaces, their policies and permissions."""
        self.topics = TopicsGroup(transport)
        """Topics, their partitions, statistics and messages."""
        self.topic_policies = TopicPoliciesGroup(transport)
        """Policies of single topics."""
        self.subscriptions = SubscriptionsGroup(transport)
        """Subscriptions, their cursors and backlogs."""
        self.schemas = SchemasGroup(transport)
        """Schemas of topics and their versions."""
        self.lookups = LookupsGroup(transport)
        """Which broker serves a topic."""
        self.transactions = TransactionsGroup(transport)
        """Transactions and their coordinators."""
        self.permissions = PermissionsGroup(transport)
        """Why a role may do something or not."""
