"""What the official suite expects to exist before it runs, created through REST.

The suite's own start script makes the cluster's address known, the tenants `public` and `private` and the namespaces
`public/default`, `public/default-2` and `private/auth` (rule 16.2). Here each is created if it is missing. A
broker without these routes, or one that needs no such step, is no reason to stop: every answer is reported instead.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping

# Settings that the suite's broker runs with (rule 16.2).
SETTINGS: Mapping[str, str] = {
    "maxMessageSize": "1024000",
    "acknowledgmentAtBatchIndexLevelEnabled": "true",
    "subscriptionKeySharedUseConsistentHashing": "false",
    "topicLevelPoliciesEnabled": "false",
}

TENANTS: Mapping[str, Mapping[str, object]] = {
    "public": {"adminRoles": ["anonymous"], "allowedClusters": ["standalone"]},
    "private": {"adminRoles": [], "allowedClusters": ["standalone"]},
}

NAMESPACES: Mapping[str, Mapping[str, list[str]]] = {
    "public/default": {"anonymous": ["produce", "consume"]},
    "public/default-2": {"anonymous": ["produce", "consume"]},
    "private/auth": {"token-principal": ["produce", "consume"]},
}


def put(url: str, body: object, token: str | None) -> str:
    """PUT ``body`` as JSON and return what came of it, in a word or two."""
    request = urllib.request.Request(url, json.dumps(body).encode(), method="PUT")
    request.add_header("Content-Type", "application/json")
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return f"created ({answer.status})"
    except urllib.error.HTTPError as error:
        return (
            "exists" if error.code == 409 else f"refused ({error.code}: {error.read()[:200].decode(errors='replace')})"
        )
    except OSError as error:
        return f"no answer ({error})"


CLUSTER: Mapping[str, str] = {
    "serviceUrl": "http://localhost:8080/",
    "serviceUrlTls": "https://localhost:8443/",
    "brokerServiceUrl": "pulsar://localhost:6650/",
    "brokerServiceUrlTls": "pulsar+ssl://localhost:6651/",
}


def prepare(http_url: str, token: str | None = None) -> dict[str, str]:
    """Create what the suite needs; answers by path, so that the caller can say what is missing."""
    answers = {"clusters/standalone": put(f"{http_url}/admin/v2/clusters/standalone", CLUSTER, token)}
    for tenant, body in TENANTS.items():
        answers[f"tenants/{tenant}"] = put(f"{http_url}/admin/v2/tenants/{tenant}", body, token)
    for namespace, roles in NAMESPACES.items():
        policies = {"auth_policies": {"namespace_auth": roles}, "replication_clusters": ["standalone"]}
        answers[f"namespaces/{namespace}"] = put(f"{http_url}/admin/v2/namespaces/{namespace}", policies, token)
    return answers
