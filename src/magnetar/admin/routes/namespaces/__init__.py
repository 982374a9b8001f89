"""Routes of namespaces: their life and their policies.

Reading order: ``namespaces``, ``namespace_creation`` (policies given with a new one), ``namespace_policies``,
``removal`` (topics, partitioned topics and whole namespaces with what belongs to them).
"""
