"""From the options to what reads values."""

from __future__ import annotations

from magnetar.columnar.values import Binary, Text, ValueDecoder
from magnetar.spark.options import SourceOptions


def value_decoder(options: SourceOptions) -> ValueDecoder:
    """For one topic's messages."""
    return ValueDecoder(Text() if options.value == "string" else Binary())
