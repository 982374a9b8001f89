"""The broker of this very process, as the REST interface needs it.

Reading order: ``broker`` (the ports of :mod:`magnetar.admin.ports`), ``topic_operations`` (what changes a topic),
``entries`` (single entries, awaited), ``stored_messages``, ``stats`` (a room: statistics and counters),
``subscription_explanation`` (why nothing arrives), ``offload_views``, ``transaction_views``.
"""
