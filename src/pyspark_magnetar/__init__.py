"""Lets Spark find ``format("pulsar")`` by itself: it imports top-level packages named ``pyspark_*``.

One such package that fails to import disables the search for all of them, so this one never fails.
"""

from __future__ import annotations

try:
    from magnetar.spark.data_source import PulsarSource as DefaultSource
except ImportError:
    # Spark without pyarrow or magnetar without its parts: the source is then not there, and others still are.
    pass
else:
    __all__ = ["DefaultSource"]
