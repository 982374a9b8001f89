"""Permissions of a namespace and of its subscriptions (rule 11.3.7), and of several of its topics at once.

A grant replaces what the role was granted before on the same object. They are kept and shown also while authorization
is off.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from magnetar.admin.http.authorization import Permissions
from magnetar.admin.http.bodies import answer, done, json_body
from magnetar.admin.http.parameters import NAMESPACE, PathText, namespace_name
from magnetar.admin.http.route_group import RouteGroup
from magnetar.admin.ports import TopicsPort
from magnetar.admin.values import grants
from magnetar.admin.values.coercion import text
from magnetar.admin.values.json_document import excerpt
from magnetar.authorization.access import TenantAccess
from magnetar.metadata.resources import Resources
from magnetar.model.errors import InvalidValueError, NotFoundError, TopicNotFoundError
from magnetar.model.names import NamespaceName, TopicName
from magnetar.model.policies import Json, JsonObject

_PERMISSIONS: Final = NAMESPACE + "/permissions"


def routes(topics: TopicsPort, resources: Resources, permissions: Permissions) -> RouteGroup:
    """Build the routes of this group."""
    router = RouteGroup()
    _role_routes(router, topics, resources)
    _subscription_routes(router, topics, resources)
    _several_topics_routes(router, topics, resources, permissions)
    return router


async def change_grants(
    topics: TopicsPort, resources: Resources, namespace: NamespaceName, changed: Callable[[JsonObject], JsonObject]
) -> Response:
    """Replace the grants of a namespace by what ``changed`` makes of its policies; return when they hold."""
    if not resources.namespaces.exists(namespace):
        raise NotFoundError("Topic's namespace does not exist")
    await resources.namespaces.change(namespace, lambda policies: {"auth_policies": changed(policies)})
    await topics.policies_in_force()
    return done()


def require_topic(topics: TopicsPort, resources: Resources, topic: TopicName) -> None:
    """Raise TopicNotFoundError unless the topic exists, as a plain or a partitioned one."""
    if not topics.topic_exists(topic) and not resources.partitioned.count(topic):
        raise TopicNotFoundError(f"Topic {topic.fqn} not found")


def _role_routes(router: RouteGroup, topics: TopicsPort, resources: Resources) -> None:
    @router.get(_PERMISSIONS)
    async def get_permissions(tenant: PathText, namespace: PathText) -> Response:
        """What is granted on the namespace: lists of actions by role."""
        return answer(grants.of_namespace(resources.namespaces.policies(namespace_name(tenant, namespace))))

    @router.post(_PERMISSIONS + "/{role}")
    async def grant_permission(tenant: PathText, namespace: PathText, role: PathText, request: Request) -> Response:
        """Grant actions on all topics of the namespace; they replace those that the role had."""
        name, given = namespace_name(tenant, namespace), grants.role_name(role)
        granted = grants.actions(await json_body(request))
        return await change_grants(
            topics, resources, name, lambda policies: grants.granted_on_namespace(policies, given, granted)
        )

    @router.delete(_PERMISSIONS + "/{role}")
    async def revoke_permission(tenant: PathText, namespace: PathText, role: PathText) -> Response:
        """Revoke what the role was granted on the namespace; grants on single topics stay."""
        name = namespace_name(tenant, namespace)
        return await change_grants(
            topics, resources, name, lambda policies: grants.revoked_on_namespace(policies, role)
        )


def _subscription_routes(router: RouteGroup, topics: TopicsPort, resources: Resources) -> None:
    @router.get(_PERMISSIONS + "/subscription")
    async def get_subscription_permissions(tenant: PathText, namespace: PathText) -> Response:
        """Which subscriptions are left to certain roles: lists of roles by subscription."""
        return answer(grants.of_subscriptions(resources.namespaces.policies(namespace_name(tenant, namespace))))

    @router.post(_PERMISSIONS + "/subscription/{subscription}")
    async def grant_subscription(
        tenant: PathText, namespace: PathText, subscription: PathText, request: Request
    ) -> Response:
        """Leave a subscription to these roles of those that may consume; the list replaces an earlier one."""
        name, given = namespace_name(tenant, namespace), grants.subscription_name(subscription)
        allowed = grants.roles(await json_body(request))
        return await change_grants(
            topics, resources, name, lambda policies: grants.granted_on_subscription(policies, given, allowed)
        )

    @router.delete(_PERMISSIONS + "/{subscription}/{role}")
    async def revoke_subscription(
        tenant: PathText, namespace: PathText, subscription: PathText, role: PathText
    ) -> Response:
        """Take a role off a subscription's list; with the last one the subscription is open to all who may consume."""
        name = namespace_name(tenant, namespace)
        return await change_grants(
            topics, resources, name, lambda policies: grants.revoked_on_subscription(policies, subscription, role)
        )


def _several_topics_routes(
    router: RouteGroup, topics: TopicsPort, resources: Resources, permissions: Permissions
) -> None:
    @router.post("/admin/v2/namespaces/grantPermissionsOnTopics")
    async def grant_on_topics(request: Request) -> Response:
        """Grant on several topics of one namespace, all or nothing: a list of objects with topic, role, actions."""
        wanted = [
            (_topic(one), grants.role_name(one.get("role")), grants.actions(one.get("actions")))
            for one in _options(await json_body(request))
        ]
        namespace = _one_namespace([topic for topic, _, _ in wanted])
        permissions.require(request, TenantAccess(namespace.tenant), recorded=True)
        for topic, _, _ in wanted:
            require_topic(topics, resources, topic)
        return await change_grants(
            topics, resources, namespace, lambda policies: grants.granted_on_topics(policies, wanted)
        )

    @router.post("/admin/v2/namespaces/revokePermissionsOnTopics")
    async def revoke_on_topics(request: Request) -> Response:
        """Revoke on several topics of one namespace, all or nothing: a list of objects with topic and role."""
        wanted = [(_topic(one), text(one.get("role"), "a role")) for one in _options(await json_body(request))]
        namespace = _one_namespace([topic for topic, _ in wanted])
        permissions.require(request, TenantAccess(namespace.tenant), recorded=True)
        for topic, _ in wanted:
            require_topic(topics, resources, topic)
        return await change_grants(
            topics, resources, namespace, lambda policies: grants.revoked_on_topics(policies, wanted)
        )


def _options(body: Json) -> list[JsonObject]:
    if not isinstance(body, list):
        raise InvalidValueError(f"expected a list of objects with topic and role, got {excerpt(body)}")
    found = [one for one in body if isinstance(one, dict)]
    if len(found) < len(body):
        raise InvalidValueError("expected a list of objects with topic and role, got another member in it")
    return found


def _topic(option: JsonObject) -> TopicName:
    return TopicName.parse(text(option.get("topic"), "the full name of a topic as topic"))


def _one_namespace(named: list[TopicName]) -> NamespaceName:
    namespaces = {topic.namespace for topic in named}
    if len(namespaces) != 1:
        raise InvalidValueError("The namespace should be the same")
    return namespaces.pop()
