"""The broker of this very process, as the REST interface needs it.

Reading order: ``broker`` (the ports of :mod:`magnetar.admin.ports`), ``topic_operations`` (what changes a topic),
``entries`` (single entries, awaited), ``stored_messages``, ``topic_stats``, ``subscription_stats``,
``nonpersistent_stats``, ``internal_stats``, ``topic_counters`` (the few numbers that /metrics shows),
``subscription_view`` (why nothing arrives), ``offload_views``, ``transaction_views``.
"""
