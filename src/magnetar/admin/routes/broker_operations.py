"""What one broker serves and can be asked to do: owned bundles, quotas, a stop, and a word for load balancers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from magnetar.admin.broker_control import BrokerControlPort
from magnetar.admin.http.bodies import answer, done, object_body
from magnetar.admin.http.parameters import PathText
from magnetar.admin.http.route_group import RouteGroup
from magnetar.admin.ports import BrokerPort
from magnetar.admin.routes.namespaces.bundles import WHOLE, BundleRing, ring_of
from magnetar.admin.values.isolation import assignment_of
from magnetar.config.settings import Settings
from magnetar.metadata.resources import Resources
from magnetar.model.errors import InvalidValueError, NotFoundError
from magnetar.model.names import NamespaceName
from magnetar.model.policies import JsonObject
from magnetar.runtime.tasks import in_turns

_EMBEDDED: Final = "embedded:metadata-log"
"""Where the metadata are: in no store that another program could connect to."""


def routes(broker: BrokerPort, control: BrokerControlPort, resources: Resources, settings: Settings) -> RouteGroup:
    """Build the routes of this group."""
    router = RouteGroup()
    _control_routes(router, control)
    _backup_routes(router, control)
    _description_routes(router, settings)

    @router.get("/admin/v2/brokers/{clusterName}/{brokerId}/ownedNamespaces")
    async def owned_namespaces(clusterName: PathText, brokerId: PathText) -> Response:
        """The bundles that have loaded topics, with what isolation policies say about them and this broker."""
        # Pulsar does not look at the cluster's name either
        own = broker.broker_id()
        if brokerId != own:
            raise NotFoundError(f"Broker id '{brokerId[:200]}' not found in available brokers.")
        return answer(await _owned(control, resources, settings.clusterName, own))

    return router


def _control_routes(router: RouteGroup, control: BrokerControlPort) -> None:
    @router.get("/admin/v2/brokers/backlog-quota-check")
    async def check_backlog_quotas() -> Response:
        """Enforce all backlog quotas now."""
        await control.check_backlog_quotas()
        return done()

    @router.post("/admin/v2/brokers/shutdown")
    async def shut_down(maxConcurrentUnloadPerSec: int = 0, forcedTerminateTopic: bool = True) -> Response:
        """Begin a clean stop: clients are let go, everything is written, then the process ends.

        The parameters pace Pulsar's way of handing topics to other brokers; one broker hands over nothing.
        """
        control.stop()
        return done(200)


def _backup_routes(router: RouteGroup, control: BrokerControlPort) -> None:
    @router.post("/admin/v2/brokers/backup")
    async def begin_backup(request: Request) -> Response:
        """Begin a backup of that name below `backupDirectory`; answered when its moment has come."""
        body = await object_body(request) or {}
        name = body.get("name")
        if not isinstance(name, str) or set(body) != {"name"}:
            raise InvalidValueError('the body is {"name": "a name for the backup"}')
        return answer(await control.begin_backup(name), 202)

    @router.get("/admin/v2/brokers/backup")
    async def backup_status() -> Response:
        """Say how far the backup is that is being written, or how the last one ended."""
        return answer(control.backup_status())


def _description_routes(router: RouteGroup, settings: Settings) -> None:
    @router.get("/admin/v2/brokers/internal-configuration")
    async def internal_configuration() -> Response:
        """Where metadata and ledgers are; there is no store beside this process."""
        stores = ("zookeeperServers", "configurationStoreServers", "metadataStoreUrl", "configurationMetadataStoreUrl")
        return answer({**dict.fromkeys(stores, _EMBEDDED), "ledgersRootPath": "/ledgers"})

    @router.get("/status.html")
    async def status() -> Response:
        """OK while the file of ``statusFilePath`` exists."""
        path = settings.statusFilePath
        if not path or not await asyncio.to_thread(Path(path).is_file):
            raise NotFoundError("Not Found: there is no file at statusFilePath")
        return PlainTextResponse("OK")


async def _owned(control: BrokerControlPort, resources: Resources, cluster: str, own: str) -> JsonObject:
    policies = resources.placement.isolation_policies(cluster) or {}
    rings: dict[NamespaceName, BundleRing] = {}
    bundles: dict[tuple[str, str], None] = {(f"pulsar/{cluster}/{own}", WHOLE): None, (f"pulsar/{own}", WHOLE): None}
    async for topic in in_turns(control.loaded_topics()):
        namespace = topic.namespace
        if namespace not in rings:
            if not resources.namespaces.exists(namespace):
                continue  # a heartbeat's, which is there already
            rings[namespace] = ring_of(resources, namespace)
        bundles[namespace.text, rings[namespace].of_topic(topic)] = None
    assignments: dict[str, JsonObject] = {}
    async for name in in_turns(dict.fromkeys(name for name, _ in bundles), 20):
        assignments[name] = assignment_of(policies, name, own)
    return {f"{name}/{bundle}": assignments[name] for name, bundle in bundles}
