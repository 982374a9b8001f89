"""Operations on bundles: splitting, giving up, and showing where topics lie in them (rules 2.20, 14.16).

One broker serves all bundles, so a split moves nothing: from then on requests about a bundle are about a smaller piece.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from typing import Annotated, Final

from starlette.requests import Request
from starlette.responses import Response

from magnetar.admin.http.arguments import RequestParameter
from magnetar.admin.http.bodies import Streamed, done, json_body, listed
from magnetar.admin.http.parameters import NAMESPACE, Flag, PathText, namespace_name
from magnetar.admin.http.route_group import RouteGroup
from magnetar.admin.http.router import register_words
from magnetar.admin.ports import BrokerPort, TopicsPort
from magnetar.admin.routes.namespaces.bundle_division import COUNT, algorithm_of, divided, positions_of
from magnetar.admin.routes.namespaces.bundles import BundleRing, bundle_text, ring_of, topic_hash
from magnetar.admin.values.counters import CounterOptions
from magnetar.metadata.resources import Resources
from magnetar.metadata.store import RecordWrite
from magnetar.model.errors import ConflictError, InvalidTopicNameError, InvalidValueError, NotFoundError
from magnetar.model.names import NamespaceName, TopicName
from magnetar.model.policies import Json
from magnetar.model.system_topics import is_system_topic
from magnetar.runtime.tasks import in_turns

# Pulsar's other routes of that form
register_words("bundle", ("removeOffloadPolicies", "resourcegroup"), others=True)

_LARGEST: Final = "LARGEST"
_HOT: Final = "HOT"
_ASKED_MAX: Final = 1000
"""Topics that one request may name."""
_PER_PIECE: Final = 500


class _BundleTopics:
    """The topics of a namespace, of both domains, by bundle."""

    def __init__(self, topics: TopicsPort, broker: BrokerPort) -> None:
        self._topics = topics
        self._broker = broker

    async def within(self, namespace: NamespaceName, low: int, high: int) -> list[TopicName]:
        """Those of one bundle."""
        last = high if high < 0xFFFFFFFF else high + 1
        return [one async for one in in_turns(self._topics.topics_of(namespace)) if low <= topic_hash(one) < last]

    async def largest(self, namespace: NamespaceName, ring: BundleRing) -> str | None:
        """The bundle with most topics, None if there are no topics."""
        found = Counter[str]()
        async for topic in in_turns(self._topics.topics_of(namespace)):
            found[ring.of_topic(topic)] += 1
        return max(found, key=lambda bundle: found[bundle]) if found else None

    async def hottest(self, namespace: NamespaceName, ring: BundleRing) -> str | None:
        """The bundle whose loaded topics have most messages a second, None if none is loaded."""
        rates: dict[str, float] = {}
        async for one in self._broker.counters(CounterOptions()):
            if one.topic.namespace == namespace:
                bundle = ring.of_topic(one.topic)
                rates[bundle] = rates.get(bundle, 0.0) + one.rate_in + one.rate_out
        return max(rates, key=lambda bundle: rates[bundle]) if rates else None


def routes(topics: TopicsPort, broker: BrokerPort, resources: Resources) -> RouteGroup:
    """Build the routes of this group."""
    router = RouteGroup()
    _split_route(router, topics, _BundleTopics(topics, broker), resources)
    _delete_route(router, topics, _BundleTopics(topics, broker), resources)
    _topic_routes(router, topics, resources)
    return router


def _split_route(router: RouteGroup, topics: TopicsPort, bundle_topics: _BundleTopics, resources: Resources) -> None:
    @router.put(NAMESPACE + "/{bundle}/split")
    async def split_bundle(
        tenant: PathText,
        namespace: PathText,
        bundle: PathText,
        request: Request,
        unload: Flag = False,
        splitAlgorithmName: str | None = None,
    ) -> Response:
        name = namespace_name(tenant, namespace)
        positions = positions_of(await json_body(request))
        if not resources.namespaces.exists(name):
            raise NotFoundError("Namespace not found")
        ring, algorithm = ring_of(resources, name), algorithm_of(splitAlgorithmName, positions)
        if bundle in (_LARGEST, _HOT):
            found = await (bundle_topics.largest if bundle == _LARGEST else bundle_topics.hottest)(name, ring)
            if found is None:
                raise NotFoundError(f"Bundle range {bundle} not found")
            bundle = found
        low, high = ring.existing(name, bundle)
        inside = await bundle_topics.within(name, low, high) if unload or algorithm == COUNT else []
        hashes = [topic_hash(topic) for topic in inside]

        def split() -> list[RecordWrite]:
            now = ring_of(resources, name)
            now.existing(name, bundle)  # another request may have split it meanwhile
            after = divided(now.boundaries, low, high, algorithm, hashes, positions)
            boundaries: Json = [f"0x{place:08x}" for place in after]
            writes = resources.namespaces.replacing(
                name, {"bundles": {"boundaries": boundaries, "numBundles": len(after) - 1}}
            )
            gone = len(after) > len(now.boundaries)
            return writes + (resources.placement.without_quota(name, bundle_text(low, high)) if gone else [])

        await resources.change_together(split)
        if unload:
            await _unload(topics, inside)
        return done()


async def _unload(topics: TopicsPort, names: Iterable[TopicName]) -> None:
    async for topic in in_turns(names, 20):
        if topics.topic_exists(topic):
            await topics.unload_topic(topic)


def _delete_route(router: RouteGroup, topics: TopicsPort, bundle_topics: _BundleTopics, resources: Resources) -> None:
    @router.delete(NAMESPACE + "/{bundle:bundle}")
    async def delete_bundle(tenant: PathText, namespace: PathText, bundle: PathText, force: Flag = False) -> Response:
        name = namespace_name(tenant, namespace)
        inside = await bundle_topics.within(name, *ring_of(resources, name).existing(name, bundle))
        if not force and not all(map(is_system_topic, inside)):
            raise ConflictError("Cannot delete non empty bundle")
        # the broker that gives it up is the one that takes it again: its clients come back
        await _unload(topics, inside)
        return done()


def _topic_routes(router: RouteGroup, topics: TopicsPort, resources: Resources) -> None:
    @router.get(NAMESPACE + "/{bundle}/topicHashPositions")
    async def topic_hash_positions(
        tenant: PathText,
        namespace: PathText,
        bundle: PathText,
        asked: Annotated[list[str] | None, RequestParameter(name="topics")] = None,
    ) -> Response:
        name = namespace_name(tenant, namespace)
        low, high = ring_of(resources, name).existing(name, bundle)
        chosen = topics.topics_of(name) if asked is None else _asked(topics, resources, name, asked)
        return _positions(name, low, high, chosen)

    @router.get("/admin/v2/non-persistent/{tenant}/{namespace}/{bundle}")
    async def list_of_bundle(tenant: PathText, namespace: PathText, bundle: PathText) -> Response:
        """The non-persistent topics of one bundle."""
        name = namespace_name(tenant, namespace)
        ring = ring_of(resources, name)
        wanted = bundle_text(*ring.existing(name, bundle))
        pieces = topics.names_of(name, ["non-persistent"], system=True)
        return listed(
            [[one for one in piece if ring.of_topic(TopicName.stored(one)) == wanted] for piece in pieces]
            if len(pieces) <= 1
            else ([one for one in piece if ring.of_topic(TopicName.stored(one)) == wanted] for piece in pieces)
        )


def _asked(topics: TopicsPort, resources: Resources, namespace: NamespaceName, asked: list[str]) -> list[TopicName]:
    """The topics of a request that exist in the namespace; a partitioned one stands for its partitions."""
    if len(asked) > _ASKED_MAX:
        raise InvalidValueError(f"a request names {_ASKED_MAX} topics at most, not {len(asked)}")
    found: dict[TopicName, None] = {}
    for text in asked:
        try:
            topic = TopicName.parse(text)
        except InvalidTopicNameError as error:
            raise InvalidValueError(f"topics: {error}") from None
        if topic.namespace == namespace:
            parts = topics.partitions_of(topic) if resources.partitioned.count(topic) else [topic]
            found.update(dict.fromkeys(part for part in parts if topics.topic_exists(part)))
    return list(found)


def _positions(namespace: NamespaceName, low: int, high: int, topics: Iterable[TopicName]) -> Response:
    """The answer, sent piece by piece: a bundle may hold very many topics."""

    async def pieces() -> AsyncIterator[str]:
        yield f'{{"namespace":{json.dumps(namespace.text)},"bundle":"{bundle_text(low, high)}","topicHashPositions":{{'
        piece: list[str] = []
        comma = ""
        last = high if high < 0xFFFFFFFF else high + 1
        async for topic in in_turns(topics):
            place = topic_hash(topic)
            if low <= place < last:
                piece.append(f"{json.dumps(topic.fqn, ensure_ascii=False)}:{place}")
            if len(piece) == _PER_PIECE:
                yield comma + ",".join(piece)
                piece, comma = [], ","
        yield (comma if piece else "") + ",".join(piece) + "}}"

    return Streamed(pieces(), media_type="application/json")
