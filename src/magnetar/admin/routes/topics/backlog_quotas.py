"""Backlog quotas of namespaces and topics, one of each type (rules 4.6.1, 11.3.6)."""

from __future__ import annotations

from typing import Final, Literal

from starlette.requests import Request
from starlette.responses import Response

from magnetar.admin.http.bodies import answer, done, json_body
from magnetar.admin.http.parameters import NAMESPACE, TOPIC, Flag, NameText, PathText, namespace_name
from magnetar.admin.http.route_group import RouteGroup
from magnetar.admin.ports import TopicsPort
from magnetar.admin.routes.topics.topic_policies import policy_topic
from magnetar.admin.values import policy_values as v
from magnetar.config.settings import Settings
from magnetar.metadata.resources import Resources
from magnetar.model.errors import PreconditionFailedError
from magnetar.model.names import NamespaceName, TopicName
from magnetar.model.policies import Json, JsonObject
from magnetar.model.topic_policies import BacklogQuota

QuotaType = Literal["destination_storage", "message_age"]
_MAP: Final = "backlog_quota_map"
"""The quotas of a namespace, by their types, among its policies."""


def routes(topics: TopicsPort, resources: Resources, settings: Settings) -> RouteGroup:
    """Build the routes of this group."""
    router = RouteGroup()
    _namespace_routes(router, topics, resources)
    _topic_routes(router, topics, resources, settings)
    return router


def _namespace_routes(router: RouteGroup, topics: TopicsPort, resources: Resources) -> None:
    namespaces = resources.namespaces

    def quotas_of(name: NamespaceName) -> JsonObject:
        found = namespaces.policies(name).get(_MAP)
        return dict(found) if isinstance(found, dict) else {}

    @router.get(NAMESPACE + "/backlogQuotaMap")
    async def get_quotas(tenant: PathText, namespace: PathText) -> Response:
        return answer(quotas_of(namespace_name(tenant, namespace)))

    @router.post(NAMESPACE + "/backlogQuota")
    async def set_quota(
        tenant: PathText, namespace: PathText, request: Request, backlogQuotaType: QuotaType = "destination_storage"
    ) -> Response:
        name = namespace_name(tenant, namespace)
        quota = v.backlog_quota(await json_body(request) or {}, f"Set namespace[{name}]")

        def changed(policies: JsonObject) -> JsonObject:
            if not v.fits(quota, policies.get("retention_policies")):
                raise PreconditionFailedError(
                    "Backlog Quota exceeds configured retention quota for namespace. "
                    "Please increase retention quota and retry"
                )
            return {_MAP: v.with_member(policies.get(_MAP), backlogQuotaType, quota)}

        await namespaces.change(name, changed)
        await topics.policies_in_force()
        return done()

    @router.delete(NAMESPACE + "/backlogQuota")
    async def remove_quota(
        tenant: PathText, namespace: PathText, backlogQuotaType: QuotaType = "destination_storage"
    ) -> Response:
        name = namespace_name(tenant, namespace)
        await namespaces.change(
            name, lambda policies: {_MAP: v.with_member(policies.get(_MAP), backlogQuotaType, None) or {}}
        )
        await topics.policies_in_force()
        return done()


def _topic_routes(router: RouteGroup, topics: TopicsPort, resources: Resources, settings: Settings) -> None:
    records, stored = resources.topic_policies, "backlogQuotaMap"

    def quotas_of(name: TopicName, *, is_global: bool) -> JsonObject:
        found = records.get(name, is_global=is_global).get(stored)
        return dict(found) if isinstance(found, dict) else {}

    @router.get(TOPIC + "/backlogQuotaMap")
    async def get_quotas(
        domain: PathText, tenant: PathText, namespace: PathText, topic: NameText,
        applied: Flag = False, isGlobal: Flag = False,
    ) -> Response:  # fmt: skip
        name = policy_topic(topics, resources, settings, domain, tenant, namespace, topic)
        found = quotas_of(name, is_global=isGlobal)
        if not found and applied:
            holds = topics.policies_of(name, local=not isGlobal)
            of_namespace = resources.namespaces.policies(name.namespace).get(_MAP)
            found = {
                "destination_storage": _shown("limitSize", holds.size_quota),
                "message_age": _shown("limitTime", holds.age_quota),
                **(of_namespace if isinstance(of_namespace, dict) else {}),
                **quotas_of(name, is_global=True),
            }
        return answer(found)

    @router.post(TOPIC + "/backlogQuota")
    async def set_quota(
        domain: PathText, tenant: PathText, namespace: PathText, topic: NameText, request: Request,
        isGlobal: Flag = False, backlogQuotaType: QuotaType = "destination_storage",
    ) -> Response:  # fmt: skip
        body = await json_body(request)
        name = policy_topic(topics, resources, settings, domain, tenant, namespace, topic)
        quota = None if body is None else v.backlog_quota(body, f"Set topic[{name}]")
        kept = topics.policies_of(name).retention
        shown: Json = {"retentionTimeInMinutes": kept.minutes, "retentionSizeInMB": kept.megabytes}
        if not v.fits(quota, shown):
            raise PreconditionFailedError(
                "Backlog Quota exceeds configured retention quota for topic. Please increase retention quota and retry"
            )
        return await store(name, backlogQuotaType, quota, is_global=isGlobal)

    @router.delete(TOPIC + "/backlogQuota")
    async def remove_quota(
        domain: PathText, tenant: PathText, namespace: PathText, topic: NameText,
        isGlobal: Flag = False, backlogQuotaType: QuotaType = "destination_storage",
    ) -> Response:  # fmt: skip
        name = policy_topic(topics, resources, settings, domain, tenant, namespace, topic)
        return await store(name, backlogQuotaType, None, is_global=isGlobal)

    async def store(name: TopicName, kind: QuotaType, quota: Json, *, is_global: bool) -> Response:
        await records.change(name, stored, lambda quotas: v.with_member(quotas, kind, quota), is_global=is_global)
        return done()


def _shown(limit: str, quota: BacklogQuota) -> Json:
    limits: JsonObject = {"limitSize": -1, "limitTime": -1, limit: quota.limit}
    return {"limit": limits["limitSize"], **limits, "policy": quota.policy.value}
