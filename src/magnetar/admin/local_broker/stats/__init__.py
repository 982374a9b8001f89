"""Statistics of topics and subscriptions in the shapes of Apache Pulsar 4.0.8.

Reading order: ``topic_stats``, ``subscription_stats``, ``nonpersistent_stats``, ``acknowledged_stretches`` (of one
subscription), ``internal_stats`` (ledgers and cursors), ``managed_ledger_info`` (their metadata), ``offline_backlog``,
``topic_counters`` and ``client_counters`` (the numbers that /metrics shows of each topic and client), ``measurements``
(those of the broker as a whole).
"""
