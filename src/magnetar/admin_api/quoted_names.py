"""Names in the paths of REST that are quoted otherwise than their neighbours."""

from __future__ import annotations

from urllib.parse import quote, quote_plus


def subscription_part(name: str) -> str:
    """Return the name of a topic's subscription as a part of a path: quoted twice, as Java's client writes it and
    Apache Pulsar's broker reads it."""
    return quote(quote_plus(name), safe="")
