"""Where several brokers and clusters would put bundles, and how much they may take: data, as one broker has it."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import ConfigDict

from magnetar.admin_api.models.record import ApiModel


class ClusterUrl(ApiModel):
    """The addresses that clients of a migrated cluster go to."""

    service_url: str | None = None
    service_url_tls: str | None = None
    broker_service_url: str | None = None
    broker_service_url_tls: str | None = None
    empty: bool | None = None
    """Whether there is none; in answers only."""


class ClusterMigration(ApiModel):
    """Whether and whither the clients of a cluster shall go."""

    migrated: bool = False
    migrated_cluster_url: ClusterUrl | None = None


class FailureDomain(ApiModel):
    """Brokers that may fail together."""

    brokers: list[str] | None = None
    """host:port of each."""


class AutoFailoverPolicy(ApiModel):
    """The conditions under which secondary brokers take over."""

    model_config: ClassVar[ConfigDict] = ConfigDict(alias_generator=None)

    policy_type: str
    """min_available"""
    parameters: dict[str, str] = {}
    """min_limit and usage_threshold."""


class NamespaceIsolation(ApiModel):
    """Which brokers shall serve which namespaces."""

    model_config: ClassVar[ConfigDict] = ConfigDict(alias_generator=None)

    namespaces: list[str]
    """Regular expressions."""
    primary: list[str]
    """Regular expressions of brokers."""
    secondary: list[str] = []
    auto_failover_policy: AutoFailoverPolicy | None = None
    unload_scope: str | None = None


class IsolatedBroker(ApiModel):
    """What isolation policies say about a broker."""

    broker_name: str = ""
    policy_name: str | None = None
    namespace_regex: list[str] = []
    primary: bool = False


class BundleOwnership(ApiModel):
    """How a broker serves a bundle."""

    model_config: ClassVar[ConfigDict] = ConfigDict(alias_generator=None)

    broker_assignment: str = "shared"
    is_controlled: bool = False
    is_active: bool = True


class BundleQuota(ApiModel):
    """What a bundle may need of a broker."""

    msg_rate_in: float = 0.0
    msg_rate_out: float = 0.0
    bandwidth_in: float = 0.0
    bandwidth_out: float = 0.0
    memory: float = 0.0
    """Megabytes."""
    dynamic: bool = True


class ResourceGroupRates(ApiModel):
    """The rates that the namespaces of a group share; what is missing or 0 is no limit."""

    publish_rate_in_msgs: int | None = None
    publish_rate_in_bytes: int | None = None
    dispatch_rate_in_msgs: int | None = None
    dispatch_rate_in_bytes: int | None = None


class BookieAffinity(ApiModel):
    """The racks of Apache BookKeeper that a namespace prefers; kept and shown."""

    bookkeeper_affinity_group_primary: str | None = None
    bookkeeper_affinity_group_secondary: str | None = None


class BookieList(ApiModel):
    """The bookies of the cluster; magnetar has none."""

    bookies: list[dict[str, str]] = []


class BookieRack(ApiModel):
    """The rack of a bookie."""

    rack: str | None = None
    hostname: str | None = None


class TopicHashPositions(ApiModel):
    """The hashes of a bundle's topics."""

    namespace: str = ""
    bundle: str = ""
    topic_hash_positions: dict[str, int] = {}
    """By topic."""


class InternalConfiguration(ApiModel):
    """The stores of a broker's metadata."""

    zookeeper_servers: str | None = None
    configuration_store_servers: str | None = None
    metadata_store_url: str | None = None
    configuration_metadata_store_url: str | None = None
    ledgers_root_path: str | None = None
    bookkeeper_metadata_service_uri: str | None = None
    state_storage_service_url: str | None = None


class MetricGroup(ApiModel):
    """Metrics that have their dimensions in common."""

    metrics: dict[str, Any] = {}
    dimensions: dict[str, str] = {}


class ResourceUsage(ApiModel):
    """How much of something is used."""

    usage: float = 0.0
    limit: float = 0.0


class BundleLoad(ApiModel):
    """What the topics of a bundle take."""

    msg_rate_in: float = 0.0
    msg_throughput_in: float = 0.0
    msg_rate_out: float = 0.0
    msg_throughput_out: float = 0.0
    consumer_count: int = 0
    producer_count: int = 0
    topics: int = 0
    cache_size: int | None = None


class LoadReport(ApiModel):
    """How much a broker has to do."""

    web_service_url: str | None = None
    web_service_url_tls: str | None = None
    pulsar_service_url: str | None = None
    pulsar_service_url_tls: str | None = None
    persistent_topics_enabled: bool = True
    non_persistent_topics_enabled: bool = True
    cpu: ResourceUsage | None = None
    memory: ResourceUsage | None = None
    direct_memory: ResourceUsage | None = None
    bandwidth_in: ResourceUsage | None = None
    bandwidth_out: ResourceUsage | None = None
    msg_throughput_in: float = 0.0
    msg_throughput_out: float = 0.0
    msg_rate_in: float = 0.0
    msg_rate_out: float = 0.0
    last_update: int = 0
    """Milliseconds since 1970."""
    last_stats: dict[str, BundleLoad] = {}
    """By bundle."""
    num_topics: int = 0
    num_bundles: int = 0
    num_consumers: int = 0
    num_producers: int = 0
    bundles: list[str] = []
    last_bundle_gains: list[str] = []
    last_bundle_losses: list[str] = []
    broker_version_string: str | None = None
    protocols: dict[str, str] = {}
    advertised_listeners: dict[str, Any] = {}
    load_manager_class_name: str | None = None
    start_timestamp: int | None = None
    max_resource_usage: float = 0.0
    load_report_type: str | None = None
