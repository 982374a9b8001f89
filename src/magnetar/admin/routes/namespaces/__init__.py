"""Routes of namespaces: their life, their policies and permissions, and operations on all their topics.

Reading order: ``namespaces``, ``namespace_creation`` (policies given with a new one), ``namespace_policies``,
``offload_policies``, ``permissions`` (grants on namespaces, subscriptions, and several topics at once), ``bundles``
(pieces of the hash space), ``namespace_operations`` (unload, clear backlogs, unsubscribe), ``removal`` (topics,
partitioned topics and whole namespaces with what belongs to them).
"""
