"""What a user does with a client that openapi-generator (its generator ``python``) made of our description.

Its arguments are the address of the broker and the directory that holds the package ``generated2``.
"""

from __future__ import annotations

import importlib
import sys


def main(url: str, directory: str) -> None:
    """Make a tenant, a namespace and a topic, set a policy, look at statistics, and meet an error."""
    sys.path.insert(0, directory)
    made = importlib.import_module("generated2")
    client = made.ApiClient(made.Configuration(host=url))
    tenants, namespaces, topics = made.TenantsApi(client), made.NamespacesApi(client), made.TopicsApi(client)
    tenants.tenants_create("made", made.TenantInfo(adminRoles=["admin"], allowedClusters=["standalone"]))
    assert tenants.tenants_get("made").admin_roles == ["admin"]
    namespaces.namespaces_create("made", "ns")
    kept = made.RetentionPolicies(retentionTimeInMinutes=60, retentionSizeInMB=10)
    namespaces.namespaces_set_retention("made", "ns", kept)
    assert namespaces.namespaces_get_retention("made", "ns") == kept
    topics.topics_create("persistent", "made", "ns", "t")
    stats = topics.topics_get_stats("persistent", "made", "ns", "t", get_precise_backlog=True)
    assert type(stats).__name__ == "TopicStatistics" and stats.msg_in_counter == 0
    try:
        topics.topics_get_stats("persistent", "made", "ns", "none")
    except made.ApiException as refused:
        assert refused.status == 404
    else:
        raise AssertionError("a topic that does not exist has statistics")


if __name__ == "__main__":
    main(*sys.argv[1:])
