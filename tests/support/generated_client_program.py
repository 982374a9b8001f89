"""What a user does with a client that openapi-python-client made of our description; run by that client's Python.

Its arguments are the address of the broker and the directory that holds the package ``generated``.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any


def main(url: str, directory: str) -> None:
    """Make a tenant, a namespace and a topic, set policies, look at statistics, and meet an error."""
    sys.path.insert(0, directory)
    client = _part("client").Client(base_url=url)
    models = _part("models")
    info = models.TenantInfo(admin_roles=["admin"], allowed_clusters=["standalone"])
    assert _call("tenants", "create", client, "made", body=info).status_code == 204
    assert _call("tenants", "get", client, "made").parsed.admin_roles == ["admin"]
    assert _call("namespaces", "create", client, "made", "ns").status_code == 204
    kept = models.RetentionPolicies(retention_time_in_minutes=60, retention_size_in_mb=10)
    assert _call("namespaces", "set_retention", client, "made", "ns", body=kept).status_code == 204
    assert _call("namespaces", "get_retention", client, "made", "ns").parsed == kept
    assert _call("namespaces", "get_policies", client, "made", "ns").parsed.retention_policies == kept
    topic = (_domain(models, "TopicsCreateDomain"), "made", "ns", "t")
    assert _call("topics", "create", client, *topic).status_code == 204
    start = models.SubscriptionStart(ledger_id=-1, entry_id=-1)
    assert _call("subscriptions", "create", client, *topic, "s", body=start).status_code == 204
    stats = _call("topics", "get_stats", client, *topic, get_precise_backlog=True).parsed
    assert type(stats).__name__ == "TopicStatistics" and stats.msg_in_counter == 0
    assert stats.subscriptions["s"].msg_backlog == 0
    assert _call("brokers", "version", client).parsed == "4.0.8"
    refused = _call("topics", "get_stats", client, *topic[:3], "none")
    assert (refused.status_code, type(refused.parsed).__name__) == (404, "Reason")
    assert refused.parsed.reason == "Topic persistent://made/ns/none not found"


def _part(name: str) -> ModuleType:
    return importlib.import_module(f"generated.{name}")


def _domain(models: ModuleType, name: str) -> Any:
    kind = getattr(models, name, None)
    return "persistent" if kind is None else kind("persistent")


def _call(group: str, verb: str, client: Any, *place: Any, **more: Any) -> Any:
    return _part(f"api.{group}.{group}_{verb}").sync_detailed(*place, client=client, **more)


if __name__ == "__main__":
    main(*sys.argv[1:])
