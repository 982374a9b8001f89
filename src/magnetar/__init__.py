"""magnetar: Apache Pulsar's messaging in Python, with its data pipelines on Spark.

Reading order for a newcomer who follows one message (docs/architecture.md): ``protocol``, ``broker``, ``storage``.
They stand on ``model``, ``config``, ``runtime``, ``schema`` and ``metadata``; ``security`` finds out who speaks,
``authorization`` what they may do; ``compaction`` and ``transactions`` are formats that the broker and the jobs
share, ``offload`` keeps old ledgers elsewhere. ``admin`` is REST, ``admin_api`` what it says, ``telemetry`` sends
what it counts elsewhere, ``app`` and ``cli`` are the programs, ``testing`` is the simulator. ``aio`` is the native
client for asyncio, ``admin_client`` that of REST. On Spark: ``client`` and ``columnar`` below ``spark``; ``lakehouse``,
``pipelines`` and ``jobs`` above it.
"""

from __future__ import annotations

from importlib import import_module

__all__ = ["Admin", "AsyncAdmin", "__version__"]  # made by __getattr__, typed in __init__.pyi

__version__ = "0.1.0"
"""The version of magnetar; pyproject.toml, REST, CONNECTED, /metrics and ``--version`` take it from here."""


def __getattr__(name: str) -> object:
    """Import the admin client when it is asked for: a broker does not need it."""
    if name in ("Admin", "AsyncAdmin"):
        # no import statement: what is below the client reads the version here, and may not know the client
        found: object = getattr(import_module("magnetar.admin_client.client"), name)
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
