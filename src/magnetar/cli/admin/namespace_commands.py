"""Commands of tenants and namespaces that are more than one request or whose request depends on several flags."""

from __future__ import annotations

import sys
from typing import Any, Final

from magnetar.cli.admin.call import Call
from magnetar.cli.admin.policy_commands import place
from magnetar.cli.admin.request import quoted

_BUNDLES_MAX: Final = 1 << 31
_POLICIES: Final[dict[str, Any]] = {
    "auth_policies": {"namespace_auth": {}, "destination_auth": {}, "subscription_auth_roles": {}},
    "replication_clusters": [],
    "allowed_clusters": [],
    "backlog_quota_map": {},
    "clusterDispatchRate": {},
    "topicDispatchRate": {},
    "subscriptionDispatchRate": {},
    "replicatorDispatchRate": {},
    "clusterSubscribeRate": {},
    "publishMaxMessageRate": {},
    "latency_stats_sample_rate": {},
    "deleted": False,
    "encryption_required": False,
    "subscription_auth_mode": "None",
    "offload_threshold": -1,
    "offload_threshold_in_seconds": -1,
    "schema_compatibility_strategy": "UNDEFINED",
    "schema_validation_enforced": False,
    "subscription_types_enabled": [],
    "properties": {},
    "migrated": False,
}
"""The policies of a new namespace, as the official tool sends them."""


def create_tenant(call: Call) -> None:
    """Create a tenant, which may use all clusters if none is named."""
    clusters = call.words("allowed-clusters") or call.get("/admin/v2/clusters") or []
    body = {"adminRoles": call.words("admin-roles"), "allowedClusters": clusters}
    call.send("PUT", _tenant(call), body=body)


def update_tenant(call: Call) -> None:
    """Change roles or clusters of a tenant; what is not said stays."""
    roles, clusters = call.words("admin-roles"), call.words("allowed-clusters")
    if not roles or not clusters:
        before = call.get(_tenant(call)) or {}
        roles = roles or before.get("adminRoles") or []
        clusters = clusters or before.get("allowedClusters") or []
    call.send("POST", _tenant(call), body={"adminRoles": roles, "allowedClusters": clusters})


def _tenant(call: Call) -> str:
    return f"/admin/v2/tenants/{quoted(call.text('tenant'))}"


def create_namespace(call: Call) -> None:
    """Create a namespace."""
    bundles = call.number("bundles") or 0
    if not 0 <= bundles < _BUNDLES_MAX:
        call.usage(f"--bundles must be from 1 to {_BUNDLES_MAX - 1}, or 0 for the broker's default")
    clusters = call.words("clusters")
    body = {**_POLICIES, "replication_clusters": clusters}
    if len(clusters) == 1:
        body["clusterThatCanDeleteNamespace"] = clusters[0]
    if bundles:
        body["bundles"] = {"numBundles": bundles}
    call.send("PUT", place(call), body=body)


def unload_namespace(call: Call) -> None:
    """Close all topics of a namespace or of one bundle."""
    bundle, broker = call.text("bundle"), call.text("destinationBroker")
    if broker and not bundle:
        call.usage("--destinationBroker needs --bundle")
    path = f"{place(call)}/{quoted(bundle)}/unload" if bundle else f"{place(call)}/unload"
    call.send("PUT", path, {"destinationBroker": broker or None})


def split_bundle(call: Call) -> None:
    """Split one bundle, by its range or its kind."""
    bundle, kind = call.text("bundle"), call.text("bundle-type")
    if bool(bundle) == bool(kind):
        call.usage("give either --bundle or --bundle-type")
    algorithm, boundaries = call.text("split-algorithm-name"), call.words("split-boundaries")
    query = {"unload": call.switch("unload"), "splitAlgorithmName": algorithm or None}
    if not all(boundary.removeprefix("-").isdecimal() for boundary in boundaries):
        call.usage("--split-boundaries must be whole numbers")
    body = [int(boundary) for boundary in boundaries] if boundaries else None
    call.send("PUT", f"{place(call)}/{quoted(bundle or kind)}/split", query, body)


def topic_positions(call: Call) -> None:
    """Show where the topics of a bundle stand in its hash range."""
    if not call.text("bundle"):
        call.usage("--bundle must be given")
    topics = ",".join(call.words("topic-list"))
    path = f"{place(call)}/{quoted(call.text('bundle'))}/topicHashPositions"
    call.show("json", call.get(path, {"topics": topics or None}))


def clear_backlog(call: Call) -> None:
    """Skip all messages of all topics, after a question on standard input unless it is forced."""
    if not call.switch("force") and not _confirmed(call):
        return
    call.send("POST", _below(call, "clearBacklog"))


def unsubscribe(call: Call) -> None:
    """Delete a subscription of all topics of a namespace or bundle."""
    call.send("POST", _below(call, "unsubscribe"))


def _below(call: Call, action: str) -> str:
    bundle, subscription = call.text("bundle"), call.text("sub")
    path = f"{place(call)}/{quoted(bundle)}/{action}" if bundle else f"{place(call)}/{action}"
    return f"{path}/{quoted(subscription)}" if subscription else path


def _confirmed(call: Call) -> bool:
    # not where answers go, which a program may read
    sys.stderr.write("Are you sure you want to clear the backlog? (Y or N)")
    sys.stderr.flush()
    line = sys.stdin.readline()
    if not line:
        sys.stderr.write("\n")
        call.usage("nothing was cleared, as standard input has no answer: give --force")
    return line.strip().lower() in ("y", "yes")


def offload_deletion_lag(call: Call) -> None:
    """Show how long local copies stay after offloading."""
    lag = call.get(f"{place(call)}/offloadDeletionLagMs")
    if lag is None:
        call.say("Unset for namespace. Defaulting to broker setting.")
    elif call.printer.shape == "json":
        call.show("json", lag)
    else:
        call.say(f"{int(lag) // 60_000} minute(s)")


def list_clusters(call: Call) -> None:
    """List clusters; ``--current`` marks the one that the broker belongs to."""
    found = call.get("/admin/v2/clusters") or []
    configuration = call.get("/admin/v2/brokers/configuration/runtime") or {}
    current = configuration.get("clusterName")
    if call.switch("current"):
        found = [f"{name}(*)" if name == current else name for name in found]
    call.show("lines", found)


def save_cluster(call: Call) -> None:
    """Register a cluster or change what is said about it: flags over the file."""
    body = _file_of_cluster(call)
    for key, name in _CLUSTER_FLAGS.items():
        value = call.values.get(key)
        if value not in (None, False, ""):
            body[name] = value
    for name, default in _CLUSTER_DEFAULTS.items():
        body.setdefault(name, default)
    method = "PUT" if call.command.name == "create" else "POST"
    call.send(method, f"/admin/v2/clusters/{quoted(call.text('cluster'))}", body=body)


def _file_of_cluster(call: Call) -> dict[str, Any]:
    path = call.text("cluster-config-file")
    if not path:
        return {}
    from magnetar.cli.admin.flat_yaml import read_flat_yaml

    return dict(read_flat_yaml(path))


def delete_cluster(call: Call) -> None:
    """Forget a cluster; with ``--all`` its tenants' namespaces too, if no other cluster has them."""
    name = call.text("cluster")
    if call.switch("all"):
        for tenant in call.get("/admin/v2/tenants") or []:
            _forget_tenant(call, tenant, name)
    call.send("DELETE", f"/admin/v2/clusters/{quoted(name)}")


def _forget_tenant(call: Call, tenant: str, cluster: str) -> None:
    """Delete what is in this cluster only, topics first, as the official tool does."""
    for namespace in call.get(f"/admin/v2/namespaces/{quoted(tenant)}") or []:
        path = f"/admin/v2/namespaces/{namespace}"
        if call.get(f"{path}/replication") not in ([cluster], []):
            continue
        for domain in ("persistent", "non-persistent"):
            for topic in call.get(f"/admin/v2/{domain}/{namespace}/partitioned") or []:
                call.send("DELETE", f"{_topic(topic)}/partitions", {"force": True})
            for topic in call.get(f"/admin/v2/{domain}/{namespace}") or []:
                call.send("DELETE", _topic(topic), {"force": True})
        call.send("DELETE", path, {"force": True})


def _topic(name: str) -> str:
    from magnetar.cli.admin.request import topic_path

    return f"/admin/v2/{topic_path(name)}"


_CLUSTER_FLAGS: Final = {
    "url": "serviceUrl",
    "url-secure": "serviceUrlTls",
    "broker-url": "brokerServiceUrl",
    "broker-url-secure": "brokerServiceUrlTls",
    "proxy-url": "proxyServiceUrl",
    "auth-plugin": "authenticationPlugin",
    "auth-parameters": "authenticationParameters",
    "proxy-protocol": "proxyProtocol",
    "tls-enable": "brokerClientTlsEnabled",
    "tls-allow-insecure": "tlsAllowInsecureConnection",
    "tls-enable-keystore": "brokerClientTlsEnabledWithKeyStore",
    "tls-trust-store-type": "brokerClientTlsTrustStoreType",
    "tls-trust-store": "brokerClientTlsTrustStore",
    "tls-trust-store-pwd": "brokerClientTlsTrustStorePassword",
    "tls-key-store-type": "brokerClientTlsKeyStoreType",
    "tls-key-store": "brokerClientTlsKeyStore",
    "tls-key-store-pwd": "brokerClientTlsKeyStorePassword",
    "tls-trust-certs-filepath": "brokerClientTrustCertsFilePath",
    "tls-key-filepath": "brokerClientKeyFilePath",
    "tls-certs-filepath": "brokerClientCertificateFilePath",
    "tls-factory-plugin": "brokerClientSslFactoryPlugin",
    "tls-factory-plugin-params": "brokerClientSslFactoryPluginParams",
    "listener-name": "listenerName",
}
_CLUSTER_DEFAULTS: Final[dict[str, Any]] = {
    "brokerClientTlsEnabled": False,
    "tlsAllowInsecureConnection": False,
    "brokerClientTlsEnabledWithKeyStore": False,
    "brokerClientTlsTrustStoreType": "JKS",
    "brokerClientTlsKeyStoreType": "JKS",
    "brokerClientSslFactoryPlugin": "org.apache.pulsar.common.util.DefaultPulsarSslFactory",
}


def coordinators(call: Call) -> None:
    """List the coordinators: their numbers, and where they are."""
    found = call.get("/admin/v3/transactions/coordinators") or []
    if call.printer.shape != "plain":
        return call.show("json", found)
    return call.show("map", {str(one.get("id")): one.get("brokerServiceUrl") for one in found})
