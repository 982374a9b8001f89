"""The questions, by subject; importing this package registers them all, so REGISTRY is complete here.

Ids are the functions' names. A new subject is a new module, named here.
"""

from tools.oracle.probe import REGISTRY
from tools.oracle.probes import (
    acks,
    failover,
    frames,
    handshake,
    key_shared,
    lookup,
    nonpersistent,
    official,
    partitions,
    producers,
    readers,
    redelivery,
    schemas,
    schemas_rest,
    seeks,
    shared,
    stats,
    subscriptions,
    topic_lists,
    topic_watching,
    transactions,
    unknown_ids,
)

__all__ = [
    "REGISTRY",
    "acks",
    "failover",
    "frames",
    "handshake",
    "key_shared",
    "lookup",
    "nonpersistent",
    "official",
    "partitions",
    "producers",
    "readers",
    "redelivery",
    "schemas",
    "schemas_rest",
    "seeks",
    "shared",
    "stats",
    "subscriptions",
    "topic_lists",
    "topic_watching",
    "transactions",
    "unknown_ids",
]
