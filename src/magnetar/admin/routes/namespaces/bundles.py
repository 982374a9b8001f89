"""Bundles: the pieces of a namespace's hash space, and which one a topic falls into."""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from zlib import crc32

from magnetar.metadata.resources import Resources
from magnetar.model.errors import (
    PreconditionFailedError,
)
from magnetar.model.names import NamespaceName, TopicName
from magnetar.model.policies import Json


def bundle_of(resources: Resources, topic: TopicName) -> str:
    """The bundle into which a topic's name falls, by CRC-32; an unknown namespace has one bundle."""
    if not resources.namespaces.exists(topic.namespace):
        return "0x00000000_0xffffffff"
    found = resources.namespaces.policies(topic.namespace)["bundles"]
    listed = found["boundaries"] if isinstance(found, dict) else []
    boundaries = [str(text) for text in listed] if isinstance(listed, list) else []
    place = bisect_right([int(text, 16) for text in boundaries], crc32(topic.fqn.encode()))
    place = min(place, len(boundaries) - 1)
    return f"{boundaries[place - 1]}_{boundaries[place]}"


def check_bundle(resources: Resources, name: NamespaceName, bundle: str) -> None:
    """Raises PreconditionFailedError unless ``bundle`` is one of the namespace's bundles."""
    found: Json = resources.namespaces.policies(name)["bundles"]
    listed = found.get("boundaries") if isinstance(found, dict) else None
    boundaries = [str(text) for text in listed] if isinstance(listed, list) else []
    pieces = dict(pairwise(boundaries))
    low, _, high = bundle.partition("_")
    if low not in pieces:
        raise PreconditionFailedError(f"Bundle {bundle} is not a bundle of namespace {name}")
    if pieces[low] != high:
        raise PreconditionFailedError(
            f"Invalid upper boundary for bundle {name}/{bundle}. Expected upper boundary of {name}/{low}_{pieces[low]}"
        )
