"""The application: all groups of routes, errors to answers, paths left encoded.

ASGI servers decode a path before routing, which would turn ``a%2Fb`` into two parts. :class:`EncodedPath` routes on
the path as it was sent; :mod:`magnetar.admin.parameters` decodes part by part.
"""

from __future__ import annotations

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from magnetar.admin import (
    backlog_quotas,
    brokers,
    clusters,
    compaction,
    cursors,
    description,
    explanations,
    lookups,
    messages,
    metrics,
    namespace_policies,
    namespaces,
    offload,
    partitions,
    schemas,
    statistics,
    subscriptions,
    tenants,
    topic_life,
    topic_policies,
    topics,
    transactions,
    unbuilt,
)
from magnetar.admin.failures import Unexpected, http_failure, known_failure, wrong_parameter
from magnetar.admin.origins import Names, OriginCheck
from magnetar.admin.ports import Admin, AdminBroker
from magnetar.config.settings import Settings
from magnetar.metadata.resources import Resources
from magnetar.model.errors import MagnetarError


class EncodedPath:
    """Replaces the decoded path of a request by the one that was sent, less a slash at its end.

    Such a slash changes nothing in Apache Pulsar either; one that is part of a name is sent as ``%2F`` and stays.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope.get("raw_path"):
            path = scope["raw_path"].partition(b"?")[0].decode("latin-1")
            scope = {**scope, "path": path.removesuffix("/") or "/"}
        await self._app(scope, receive, send)


def create_app(broker: AdminBroker, resources: Resources, settings: Settings) -> FastAPI:
    """The REST interface of one broker; its OpenAPI description is at /openapi.json."""
    app = FastAPI(title="magnetar", version=brokers.VERSION, redirect_slashes=False, docs_url=None, redoc_url=None)
    app.add_exception_handler(MagnetarError, known_failure)
    app.add_exception_handler(HTTPException, http_failure)
    app.add_exception_handler(RequestValidationError, wrong_parameter)
    admin = Admin(broker, resources, settings)
    for group in (
        brokers,
        clusters,
        tenants,
        namespaces,
        namespace_policies,
        backlog_quotas,
        topic_policies,
        topics,
        partitions,
        schemas,
        topic_life,
        cursors,
        subscriptions,
        explanations,
        statistics,
        transactions,
        compaction,
        offload,
        lookups,
        messages,
        metrics,
    ):
        app.include_router(group.routes(admin))
    app.include_router(description.routes(app))
    app.router.routes.append(unbuilt.route())
    app.add_middleware(Unexpected)
    app.add_middleware(EncodedPath)
    app.add_middleware(OriginCheck, names=Names.of(settings))
    return app
