"""The broker of this very process, as the REST interface needs it.

Reading order: ``broker`` (all ports of :mod:`magnetar.admin.ports`), ``loaded_topics`` (topics by name), ``topics``,
``topic_operations``, ``subscriptions``, ``messages`` with ``stored_messages`` and ``entries`` (single ones, awaited),
``statistics`` with ``stats`` (a package: their shapes, and counters) and ``subscription_explanation`` (why nothing
arrives), ``offload_views``, ``transaction_views``, ``inner_clients`` (publishing and reading in a peer's name),
``control`` (the process as a whole).
"""
