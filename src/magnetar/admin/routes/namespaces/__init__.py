"""Routes of namespaces: their life, their policies and permissions, and operations on all their topics.

Reading order: ``namespaces``, ``namespace_creation`` (policies given with a new one), ``namespace_policies``,
``offload_policies``, ``cluster_policies`` (those that name clusters or bookies), ``replication`` (which clusters may be
named), ``permissions`` (grants on namespaces, subscriptions, and several topics at once), ``bundles`` (pieces of the
hash space), ``bundle_division`` and ``bundle_operations`` (splitting them), ``resource_quotas`` (what they may need),
``namespace_operations`` (unload, clear backlogs, unsubscribe), ``removal`` (topics, partitioned topics and whole
namespaces with what belongs to them).
"""
