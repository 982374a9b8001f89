"""Values that all folders share: no I/O, no state beyond a cache.

Reading order: ``names`` and ``topic_pattern`` (of namespaces and topics), ``ids``, ``errors`` (one tree, with wire code
and HTTP status), ``subscription_types``, ``hashing`` (keys to slots), ``ordinals``, ``ordinal_bitmap`` and
``sorted_names`` (sets in order), ``schemas``, ``policies`` and ``topic_policies``, ``system_topics`` and
``own_properties`` (what the broker keeps for itself), ``byte_budget_cache``.
"""
