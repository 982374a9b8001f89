"""Models of all bodies and answers, by subject.

Reading order: ``record`` (what they share), ``tenants``, ``clusters``, ``rates``, ``policies`` (values of single
ones), ``namespaces``, ``topics``, ``topic_stats``, ``internal_stats``, ``messages``, ``schemas``, ``permissions``,
``explanations``, ``transactions``, ``offload``.
"""
