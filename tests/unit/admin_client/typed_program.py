"""A program of a user of the admin clients, for mypy: it is never run."""

from __future__ import annotations

from magnetar import Admin, AsyncAdmin
from magnetar.admin_api.models.policies import RetentionPolicies
from magnetar.admin_api.models.topic_stats import TopicStatistics


async def right(admin: Admin) -> int:
    """What a type checker has to accept."""
    names: list[str] = admin.tenants.list()
    kept: RetentionPolicies | None = admin.namespaces.get_retention("public/default")
    stats: TopicStatistics = admin.topics.get_stats("orders", get_precise_backlog=True)
    found: TopicStatistics = await AsyncAdmin().topics.get_stats("orders")
    backlog: int = stats.subscriptions["s"].msg_backlog
    return len(names) + len(found.subscriptions) + backlog + (kept is None)


def wrong(admin: Admin) -> None:
    """What it has to refuse: an ignored error that is none is one to mypy."""
    admin.tenants.create("acme", 5)  # type: ignore[arg-type]
    number: int = admin.tenants.list()  # type: ignore[assignment]
    del number
