"""Properties that the broker keeps among those of a topic or a durable subscription.

No client sees them, and none may set them: what a client wrote under such a name would be read as the broker's own word
that a topic has ended, or where its compacted view lies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

REPLICATED: Final[Mapping[str, str]] = {"#replicated": "true"}
"""A client asked for the subscription's state to be replicated, which is shown and does nothing else (rule 14.3)."""
OF_SUBSCRIPTIONS: Final[tuple[str, ...]] = ("#replicated", "#compacted", "#pulsar.internal.")
"""Beginnings of the names of those that are kept with a subscription, and of those that Apache Pulsar keeps there."""
SUBSCRIPTION_PROPERTIES_MAX: Final = 64 << 10
"""Characters of a subscription's properties."""
OF_TOPICS: Final = ("magnetar.", "pulsar.topic.")
"""Beginnings of the names of those that are kept with a topic."""


def is_replicated(properties: Mapping[str, object]) -> bool:
    """Whether a client asked for the subscription's state to be replicated."""
    return properties.get("#replicated") == "true"


def refusal(names: Iterable[str], own: tuple[str, ...]) -> str | None:
    """Return why properties of these names are refused, where those that begin so are the broker's; else ``None``."""
    for name in names:
        if name.startswith(own):
            beginnings = " or ".join(own)
            return f"the property {name[:80]!r} is refused: names that begin with {beginnings} are the broker's own"
    return None
