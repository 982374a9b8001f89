"""Routes of topics and of what belongs to one topic.

Reading order: ``topics``, ``partitions``, ``lifecycle``, ``topic_properties``, ``topic_policies``, ``backlog_quotas``,
``permissions``, ``statistics``, ``ledger_info`` (metadata), ``compaction``,
``offload``; then subscriptions: ``subscriptions``, ``cursors``, ``messages``, ``explanations``.
"""
