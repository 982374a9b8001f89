"""Models of all bodies and answers, by subject.

Reading order: ``record`` (what they share), ``clusters``, ``policies`` (values of single ones), ``namespaces``,
``topics``, ``topic_stats``, ``internal_stats``, ``ledger_info``, ``messages``, ``schemas``, ``permissions``,
``explanations``, ``transactions``, ``offload``, ``placement``.
"""
