"""What all producers and consumers of one client share."""

from __future__ import annotations

import random
from dataclasses import dataclass

from magnetar.client.aio.topic_lookup import TopicLookup
from magnetar.runtime.clock import Clock


@dataclass(frozen=True, slots=True)
class Environment:
    """Lookup, time and chance; a simulation has its own."""

    lookup: TopicLookup
    clock: Clock
    rng: random.Random
    timeout: float
    """Seconds that an operation may take."""
