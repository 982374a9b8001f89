"""Clusters."""

from __future__ import annotations

from typing import Final

from magnetar.admin_api.models.clusters import ClusterData
from magnetar.admin_api.operation import Operation

_ALL: Final = "/admin/v2/clusters"
_ONE: Final = "/admin/v2/clusters/{cluster}"
_DATA: Final = {"serviceUrl": "http://pulsar.example.com:8080", "brokerServiceUrl": "pulsar://pulsar.example.com:6650"}
_MISSING: Final = {404: "Cluster does not exist"}

CLUSTERS: Final = (
    Operation("clusters.list", "GET", _ALL, "List the clusters", answer=list[str]),
    Operation("clusters.get", "GET", _ONE, "Show a cluster", answer=ClusterData, errors=_MISSING),
    Operation(
        "clusters.create", "PUT", _ONE, "Create a cluster", body=ClusterData, success=200, example=_DATA,
        errors={409: "Cluster already exists", 412: "Cluster name is not valid"},
    ),
    Operation(
        "clusters.update", "POST", _ONE, "Replace the addresses of a cluster", body=ClusterData, success=200,
        example=_DATA, errors=_MISSING,
    ),
    Operation(
        "clusters.delete", "DELETE", _ONE, "Delete a cluster", errors={**_MISSING, 412: "Cluster is not empty"}
    ),
)  # fmt: skip
"""The operations of this group."""
