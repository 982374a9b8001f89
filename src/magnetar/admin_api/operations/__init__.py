"""The rows of the table of operations, by subject; who adds a route adds its row here.

Reading order: ``catalogue`` (all of them), ``tenants``, ``clusters``, ``brokers``, ``namespaces``, ``policy_rows``
(three rows from one line), ``namespace_policies``, ``permissions``, ``topics``, ``topic_policies``, ``subscriptions``,
``schemas``, ``transactions``, ``offload``.
"""
