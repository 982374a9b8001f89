"""Permissions of a topic, which hold beside those of its namespace (rule 11.4.7).

Those of a partitioned topic hold for its partitions, too. Unless ``allowAclChangesOnNonExistentTopics`` is set, the
topic has to exist.
"""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from magnetar.admin.http.bodies import answer, json_body
from magnetar.admin.http.parameters import TOPIC, NameText, PathText, topic_name
from magnetar.admin.http.route_group import RouteGroup
from magnetar.admin.ports import TopicsPort
from magnetar.admin.routes.namespaces.permissions import change_grants, require_topic
from magnetar.admin.values import grants
from magnetar.config.settings import Settings
from magnetar.metadata.resources import Resources
from magnetar.model.names import TopicName

_PERMISSIONS: Final = TOPIC + "/permissions"


def routes(topics: TopicsPort, resources: Resources, settings: Settings) -> RouteGroup:
    """Build the routes of this group."""
    router = RouteGroup()

    def named(domain: str, tenant: str, namespace: str, topic: str) -> TopicName:
        name = topic_name(domain, tenant, namespace, topic)
        if not settings.allowAclChangesOnNonExistentTopics:
            require_topic(topics, resources, name)
        return name

    @router.get(_PERMISSIONS)
    async def get_permissions(domain: PathText, tenant: PathText, namespace: PathText, topic: NameText) -> Response:
        """What is granted on the topic, by its namespace or for itself: lists of actions by role."""
        name = named(domain, tenant, namespace, topic)
        return answer(grants.of_topic(resources.namespaces.policies(name.namespace), name))

    @router.post(_PERMISSIONS + "/{role}")
    async def grant_permission(
        domain: PathText, tenant: PathText, namespace: PathText, topic: NameText, role: PathText, request: Request
    ) -> Response:
        """Grant actions on the topic and its partitions; they replace those that the role had there."""
        given, granted = grants.role_name(role), grants.actions(await json_body(request))
        # after the body, which may take its time: the next topic of that name would come with the grant
        name = named(domain, tenant, namespace, topic)
        return await change_grants(
            topics, resources, name.namespace, lambda found: grants.granted_on_topics(found, [(name, given, granted)])
        )

    @router.delete(_PERMISSIONS + "/{role}")
    async def revoke_permission(
        domain: PathText, tenant: PathText, namespace: PathText, topic: NameText, role: PathText
    ) -> Response:
        """Revoke what the role was granted on the topic and on each of its partitions; the namespace's grants stay."""
        name = named(domain, tenant, namespace, topic)
        concerned = [name, *name.partitions(resources.partitioned.count(name))]
        return await change_grants(
            topics,
            resources,
            name.namespace,
            lambda found: grants.revoked_on_topics(found, [(one, role) for one in concerned]),
        )

    return router
