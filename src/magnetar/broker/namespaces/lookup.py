"""Answers about topics: the number of partitions, the topics of a namespace, who may ask (rules of group 2)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from itertools import chain
from typing import NamedTuple

from magnetar.config.advertised_listeners import AdvertisedListeners
from magnetar.config.settings import Settings
from magnetar.metadata.resources import Resources
from magnetar.model.errors import (
    ConflictError,
    InvalidTopicNameError,
    MetadataError,
    NotAllowedError,
    ServiceNotReadyError,
    TopicNotFoundError,
)
from magnetar.model.names import NamespaceName, TopicName
from magnetar.model.policies import PARTITIONS_MAX, AutoTopicCreation
from magnetar.model.sorted_names import checksum_of, hex_digest
from magnetar.model.system_topics import ASSIGN_TOPIC, is_change_events, is_reserved, is_system_topic
from magnetar.model.topic_pattern import TopicPattern


class TopicList(NamedTuple):
    """The answer to GET_TOPICS_OF_NAMESPACE."""

    pieces: Sequence[Sequence[str]]
    """Full names, sorted."""
    filtered: bool
    hash: str
    changed: bool


class NoSuchTopicError(TopicNotFoundError):
    """There is no such topic in a namespace that exists, and this question does not create it."""


def require_namespace(resources: Resources, name: TopicName) -> None:
    """Check that the namespace exists. Raises TopicNotFoundError (rule 2.9)."""
    if not resources.namespaces.takes_topics(name.namespace):
        if name.namespace.cluster is not None:
            raise TopicNotFoundError(
                f"Namespace {name.namespace} not found: names of the v1 form, with a cluster between tenant and "
                "namespace, are not served by magnetar; leave the cluster out"
            )
        raise TopicNotFoundError("Namespace not found")


class BrokerAddresses(NamedTuple):
    """Where a client reaches the broker without and with TLS; empty where that is not advertised."""

    url: str
    url_tls: str


def addresses(listeners: AdvertisedListeners, own: BrokerAddresses, name: str | None) -> BrokerAddresses:
    """The addresses of a listener, those of the broker for a client that names none (rule 2.3).

    Raises ServiceNotReadyError for a listener that is not advertised (rule 2.4).
    """
    if not name:
        return own
    found = listeners.addresses.get(name)
    if found is None:
        raise ServiceNotReadyError(f"the broker do not have {name} listener")
    return BrokerAddresses(found.get("pulsar", ""), found.get("pulsar+ssl", ""))


async def partition_count(
    resources: Resources,
    auto: AutoTopicCreation,
    name: TopicName,
    room: Callable[[NamespaceName, int], bool],
    *,
    exists: bool,
    may_create: bool,
) -> int:
    """The number of partitions of a topic, 0 if it has none; creates a partitioned topic where policies say so (rules
    2.7, 2.8, 2.13).

    ``room``: whether the namespace may have so many more topics. Raises TopicNotFoundError, NotAllowedError,
    MetadataError.
    """
    require_namespace(resources, name)
    if name.is_partition:
        partitions = resources.partitioned.count(name.parent)
        # a partition of nothing is a topic like any other
        there = name.partition_index < partitions if partitions else exists or (may_create and auto.allowed)
        if not there:
            raise NoSuchTopicError(f"Topic {name.fqn} not found, and it is not to be created")
        return 0
    partitions = resources.partitioned.count(name)
    if partitions > PARTITIONS_MAX:
        raise MetadataError(
            f"{name.fqn} is said to have {partitions} partitions, a broker serves {PARTITIONS_MAX}: delete it "
            f"(DELETE /admin/v2/{name.rest_path}/partitions)"
        )
    if partitions or exists:
        return partitions
    if name.fqn == ASSIGN_TOPIC:
        # without transactions there is none, and this is how Apache Pulsar's standalone lets a client see it
        return 0
    if may_create and is_change_events(name):
        return 0
    if not (may_create and auto.allowed):
        raise NoSuchTopicError(f"Topic {name.fqn} not found, and it is not to be created")
    if is_reserved(name):
        # PRODUCER and SUBSCRIBE say why it may not be made, as those of Apache Pulsar do
        return 0
    if is_system_topic(name):
        raise TopicNotFoundError(f"Topic {name.fqn} not found: it is a system topic, which only the broker makes")
    if auto.partitions:
        if not room(name.namespace, auto.partitions):
            raise NotAllowedError("Exceed maximum number of topics in namespace.")
        try:
            await resources.partitioned.create(name, auto.partitions)
        except ConflictError:
            # another client's lookup came first
            return resources.partitioned.count(name)
    return auto.partitions


def topics_hash(names: Sequence[str]) -> str:
    """The hash of a list of topics: CRC32C over the sorted names (rule 2.18)."""
    return hex_digest(checksum_of(sorted(names), 0, first=True)) if names else "00000000"


def selecting(
    pieces: Sequence[Sequence[str]], pattern: str | None, known_hash: str | None, settings: Settings
) -> Generator[int, None, TopicList]:
    """Filter a sorted list by pattern (rule 2.17) and compare it with ``known_hash`` (rule 2.18).

    Works in steps; each yields the number of names that it compared, some hundred at most.
    """
    filtered = False
    if (
        pattern is not None
        and settings.enableBrokerSideSubscriptionPatternEvaluation
        and len(pattern) <= settings.subscriptionPatternMaxLength
    ):
        # a pattern that cannot be read here is left to the client, whose dialect it is
        with suppress(InvalidTopicNameError):
            wanted, filtered = TopicPattern(pattern), True
            pieces = yield from _chosen(pieces, wanted)
    checksum, first = 0, True
    for piece in pieces:
        checksum, first = checksum_of(piece, checksum, first=first), False
        yield len(piece) // 64 + 1  # to compare with a pattern takes longer
    digest = hex_digest(checksum)
    if known_hash is not None and known_hash == digest:
        return TopicList((), filtered, digest, False)
    return TopicList(pieces, filtered, digest, True)


def _chosen(pieces: Sequence[Sequence[str]], wanted: TopicPattern) -> Generator[int, None, Sequence[Sequence[str]]]:
    found: list[Sequence[str]] = []
    for looked_at, some in wanted.chosen(chain.from_iterable(pieces)):
        if some:
            found.append(some)
        yield looked_at
    return found
