"""The REST application of one broker: every group of routes, errors to answers, and what stands around them.

The order of the groups counts: the first route that matches a path takes it, and the last one takes all that is left.
"""

from __future__ import annotations

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from magnetar.admin.http import docs_page
from magnetar.admin.http.encoded_path import EncodedPath
from magnetar.admin.http.error_responses import Unexpected, http_failure, known_failure, wrong_parameter
from magnetar.admin.http.origins import Names, OriginCheck
from magnetar.admin.ports import Admin, AdminBroker
from magnetar.admin.routes import brokers, clusters, lookups, metrics, not_implemented, schemas, tenants, transactions
from magnetar.admin.routes.namespaces import namespace_policies, namespaces
from magnetar.admin.routes.topics import (
    backlog_quotas,
    compaction,
    cursors,
    explanations,
    lifecycle,
    messages,
    offload,
    partitions,
    statistics,
    subscriptions,
    topic_policies,
    topics,
)
from magnetar.config.settings import Settings
from magnetar.metadata.resources import Resources
from magnetar.model.errors import MagnetarError


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
        lifecycle,
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
    app.include_router(docs_page.routes(app))
    app.router.routes.append(not_implemented.route())
    app.add_middleware(Unexpected)
    app.add_middleware(EncodedPath)
    app.add_middleware(OriginCheck, names=Names.of(settings))
    return app
