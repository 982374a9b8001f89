"""Bundles: the pieces of a namespace's hash space, and which one a topic falls into.

A topic falls by the CRC-32 of its full name. Boundaries are policies of the namespace; a bundle is written
``0x40000000_0x80000000``: from the first, up to but without the second, except that the last one ends with 0xffffffff.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import lru_cache
from typing import Final
from zlib import crc32

from magnetar.metadata.resources import Resources
from magnetar.model.errors import PreconditionFailedError
from magnetar.model.names import NamespaceName, TopicName
from magnetar.model.policies import Json

WHOLE: Final = "0x00000000_0xffffffff"
_RANGE: Final = re.compile(r"(0[xX][0-9a-fA-F]{1,8})_(0[xX][0-9a-fA-F]{1,8})", re.ASCII)


class BundleRing:
    """The bundles of one namespace. Immutable."""

    def __init__(self, boundaries: tuple[int, ...]) -> None:
        self.boundaries = boundaries

    def of_hash(self, place: int) -> str:
        """The bundle into which a hash falls."""
        end = min(bisect_right(self.boundaries, place), len(self.boundaries) - 1)
        return bundle_text(self.boundaries[end - 1], self.boundaries[end])

    def of_topic(self, topic: TopicName) -> str:
        """The bundle into which a topic's name falls."""
        return self.of_hash(topic_hash(topic))

    def existing(self, namespace: NamespaceName, bundle: str) -> tuple[int, int]:
        """Where a bundle begins and ends. Raises PreconditionFailedError, with Pulsar's texts, if there is none."""
        found = _RANGE.fullmatch(bundle)
        if found is None:
            raise PreconditionFailedError(f"Invalid bundle range: {bundle[:100]}")
        low, high = int(found[1], 16), int(found[2], 16)
        start = bisect_right(self.boundaries, low) - 1
        if start == len(self.boundaries) - 1 or self.boundaries[start] != low:
            raise PreconditionFailedError(
                f"Cannot find bundle {namespace}/{bundle_text(low, high)} in the bundles list"
            )
        end = self.boundaries[start + 1]
        if end != high:
            raise PreconditionFailedError(
                f"Invalid upper boundary for bundle {namespace}/{bundle_text(low, high)}. Expected upper boundary of "
                f"{namespace}/{bundle_text(low, end)}"
            )
        return low, high


def bundle_text(low: int, high: int) -> str:
    """The name of a bundle."""
    return f"0x{low:08x}_0x{high:08x}"


def topic_hash(topic: TopicName) -> int:
    """The place of a topic in the hash space."""
    return crc32(topic.fqn.encode())


def ring_of(resources: Resources, namespace: NamespaceName) -> BundleRing:
    """The bundles of a namespace. Raises NotFoundError."""
    return bundle_ring(resources.namespaces.policies(namespace)["bundles"])


def bundle_ring(bundles: Json) -> BundleRing:
    """The bundles that a namespace's policy says."""
    listed = bundles.get("boundaries") if isinstance(bundles, dict) else None
    return _ring(tuple(str(text) for text in listed) if isinstance(listed, list) else ())


@lru_cache(16)
def _ring(boundaries: tuple[str, ...]) -> BundleRing:
    return BundleRing(tuple(int(text, 16) for text in boundaries) or (0, 0xFFFFFFFF))


def bundle_of(resources: Resources, topic: TopicName) -> str:
    """The bundle into which a topic's name falls; an unknown namespace has one bundle."""
    if not resources.namespaces.exists(topic.namespace):
        return WHOLE
    return ring_of(resources, topic.namespace).of_topic(topic)


def existing_bundle(resources: Resources, namespace: NamespaceName, bundle: str) -> str:
    """The name of a bundle that exists, however it was written. Raises NotFoundError, PreconditionFailedError."""
    return bundle_text(*ring_of(resources, namespace).existing(namespace, bundle))
