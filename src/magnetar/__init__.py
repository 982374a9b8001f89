"""magnetar: Apache Pulsar's messaging in Python, with its data pipelines on Spark.

Reading order for a newcomer who follows one message (docs/architecture.md): ``protocol``, ``broker``, ``storage``.
They stand on ``model``, ``config``, ``runtime``, ``schema`` and ``metadata``; ``security`` finds out who speaks,
``authorization`` what they may do; ``compaction`` and ``transactions`` are formats that the broker and the jobs
share, ``offload`` keeps old ledgers elsewhere. ``admin`` is REST, ``admin_api`` what it says, ``app`` and ``cli`` the
programs, ``testing`` the simulator. ``aio`` is the native client for asyncio. On Spark: ``client`` and ``columnar``
below ``spark``; ``lakehouse``, ``pipelines`` and ``jobs`` above it.
"""

__version__ = "0.1.0"
"""The version of magnetar; pyproject.toml, REST, CONNECTED, /metrics and ``--version`` take it from here."""
