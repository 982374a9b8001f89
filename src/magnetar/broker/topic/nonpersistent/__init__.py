"""Non-persistent topics: messages reach the consumers that are connected now, and nothing is stored.

Reading order: ``nonpersistent_topic``, ``fan_out`` (what stands in place of a log), ``nonpersistent_subscription`` and
``nonpersistent_topics`` (all that a broker has).
"""
