"""Chooses the consumer for every entry of a subscription; pure: events in, instructions out.

Reading order: ``instructions`` and ``consumers`` (the vocabulary), ``dispatcher`` (the face all four types share),
``exclusive`` and ``failover`` (one active consumer, no memory of single entries), ``sharing`` (what Shared and
Key_Shared have in common: pending entries, replay, blocking), ``shared``, ``key_shared`` with its selectors
(``hash_ranges``, ``hash_ring``, ``sticky_ranges``), ``draining`` and ``waiting``; ``ranking`` is Failover's.

Entries are named by their ordinal: one int, counted from 0 for the first entry ever written to the topic.
"""
