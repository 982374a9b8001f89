"""What of Apache Pulsar is served here, counted: ``python -m tools.coverage WORD``.

Each word is a module with a ``main``. Reading order: ``routes`` (of REST), ``metrics`` (families of /metrics) with
``metrics_work`` (what makes them move), ``settings``.
"""
