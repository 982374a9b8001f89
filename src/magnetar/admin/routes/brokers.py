"""/admin/v2/brokers: the list of brokers, health, version and configuration (rule 11.2.4)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Final

from starlette.responses import PlainTextResponse, Response

from magnetar.admin.http.bodies import answer
from magnetar.admin.http.parameters import PathText
from magnetar.admin.http.route_group import RouteGroup
from magnetar.admin.http.router import register_words
from magnetar.admin.ports import BrokerPort, TopicsPort
from magnetar.config.dynamic_settings import NAMES_MAX, checked, dynamic_names, is_dynamic
from magnetar.config.settings import Settings
from magnetar.metadata.dynamic_configuration import DynamicConfiguration
from magnetar.model.errors import NotFoundError, PreconditionFailedError

COMPATIBLE_WITH: Final = "4.0.8"
"""The version of Apache Pulsar whose behaviour this broker follows; clients and tools read it as the broker's own."""

register_words(
    "cluster", ("backlog-quota-check", "backup", "configuration", "internal-configuration", "shutdown"), others=True
)


def routes(broker: BrokerPort, topics: TopicsPort, kept: DynamicConfiguration, settings: Settings) -> RouteGroup:
    """Build the routes of this group."""
    router = RouteGroup("/admin/v2/brokers")

    @router.get("")
    async def list_brokers() -> Response:
        return answer([broker.broker_id()])

    @router.get("/health")
    async def health(topicVersion: str = "V1") -> Response:
        if topicVersion not in ("V1", "V2"):
            raise NotFoundError(f"topicVersion {topicVersion} is not one of V1, V2")
        await broker.check_health(with_cluster=topicVersion == "V1")
        return _text("ok")

    @router.get("/ready")
    async def ready() -> Response:
        return _text("ok")

    @router.get("/version")
    async def version() -> Response:
        return _text(COMPATIBLE_WITH)

    @router.get("/leaderBroker")
    async def leader() -> Response:
        leader_id = broker.broker_id()
        return answer({"serviceUrl": broker.web_url(), "brokerId": leader_id})

    @router.get("/configuration/runtime")
    async def configuration() -> Response:
        return answer({name: _shown(value) for name, value in _not_secret(settings)})

    @router.get("/configuration")
    async def names_of_dynamic_configuration() -> Response:
        return answer(dynamic_names())

    @router.get("/configuration/values")
    async def values_of_dynamic_configuration() -> Response:
        return answer(dict(sorted(kept.values().items())))

    @router.post("/configuration/{configName}/{configValue}")
    async def change_configuration(configName: PathText, configValue: PathText) -> Response:
        checked(configName, configValue)
        if configName not in kept.values() and len(kept.values()) >= NAMES_MAX:
            raise PreconditionFailedError(f"{NAMES_MAX} settings are kept already")
        await kept.put(configName, configValue)
        await topics.policies_in_force()
        return Response()

    @router.delete("/configuration/{configName}")
    async def forget_configuration(configName: PathText) -> Response:
        if configName not in kept.values() and not is_dynamic(configName):
            raise PreconditionFailedError("Can't delete non-dynamic configuration")
        await kept.delete(configName)
        await topics.policies_in_force()
        return Response()

    # Pulsar's other routes of that form are not built and must not look as if they were (see not_implemented)
    @router.get("/{cluster:cluster}")
    async def list_brokers_of_cluster(cluster: PathText) -> Response:
        # Pulsar does not look at the name either
        return answer([broker.broker_id()])

    return router


def _text(text: str) -> Response:
    """A bare text, labelled as JSON as Pulsar does it."""
    return PlainTextResponse(text, media_type="application/json")


def _not_secret(settings: Settings) -> Iterator[tuple[str, object]]:
    for field in dataclasses.fields(settings):
        if not field.metadata["about"].secret:
            yield field.name, getattr(settings, field.name)


def _shown(value: object) -> str | None:
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)
