"""Clusters, brokers with their backups, and tenants."""

from __future__ import annotations

from typing import Literal

from magnetar.admin_api.models.record import ApiModel


class ClusterData(ApiModel):
    """The addresses of a cluster, and how brokers of other clusters connect to it."""

    service_url: str | None = None
    """Address of its REST interface: http://host:port."""
    service_url_tls: str | None = None
    broker_service_url: str | None = None
    """Address of its binary port: pulsar://host:port."""
    broker_service_url_tls: str | None = None
    proxy_service_url: str | None = None
    proxy_protocol: str | None = None
    """SNI, or nothing."""
    authentication_plugin: str | None = None
    authentication_parameters: str | None = None
    peer_cluster_names: list[str] | None = None
    broker_client_tls_enabled: bool = False
    tls_allow_insecure_connection: bool = False
    broker_client_tls_enabled_with_key_store: bool = False
    broker_client_tls_trust_store_type: str | None = None
    broker_client_tls_trust_store: str | None = None
    broker_client_tls_trust_store_password: str | None = None
    broker_client_tls_key_store_type: str | None = None
    broker_client_tls_key_store: str | None = None
    broker_client_tls_key_store_password: str | None = None
    broker_client_trust_certs_file_path: str | None = None
    broker_client_certificate_file_path: str | None = None
    broker_client_key_file_path: str | None = None
    broker_client_ssl_factory_plugin: str | None = None
    broker_client_ssl_factory_plugin_params: str | None = None
    listener_name: str | None = None
    migrated: bool | None = None


class BrokerInfo(ApiModel):
    """A broker."""

    service_url: str = ""
    """Address of its REST interface."""
    broker_id: str = ""
    """host:port, as the list of brokers has it."""


class TenantInfo(ApiModel):
    """A tenant: who administers it, and in which clusters it may have topics."""

    admin_roles: list[str] = []
    """Roles that administer the tenant."""
    allowed_clusters: list[str] = []
    """Clusters that its namespaces may be replicated to; a new tenant needs at least one."""


class BackupRequest(ApiModel):
    """Which backup a broker is to write."""

    name: str
    """Letters, digits, '.', '_' and '-': the directory's name below `backupDirectory`."""


class BrokerBackup(ApiModel):
    """How far a backup is, or how it ended."""

    name: str
    status: Literal["RUNNING", "SUCCESS", "ERROR"]
    taken: int
    """The moment that it shows, in milliseconds since 1970."""
    bytes: int
    """Written so far."""
    total_bytes: int
    """What it takes in all, as far as is known."""
    last_error: str
    last_success: str
    """The last backup that is whole, since the start; empty: there is none."""
    last_success_taken: int
    """The moment that it shows, in milliseconds since 1970."""
