"""The subscription types: who gets which entry.

Reading order: ``dispatcher`` is the interface that all types show to the subscription; ``exclusive`` and ``failover``
(whose consumers ``failover_order`` puts in order) are each a ``single_active_consumer``, which remembers no single
entries; ``multiple_consumers`` is what the others have in common: pending entries, replay, blocking. ``shared`` is
round robin, ``shared_chunks`` the same for topics with chunked messages, and ``key_shared`` follows the keys.
"""
