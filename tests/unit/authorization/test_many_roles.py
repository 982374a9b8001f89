"""An answer takes as long for many roles as for one: what is long is gone through once for each record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from magnetar.authorization.access import TenantAccess, TopicAccess
from magnetar.authorization.grants import Grants, RolePatterns
from magnetar.authorization.operations import TopicOperation
from magnetar.authorization.rules import RoleRules
from magnetar.config.settings import Settings
from magnetar.metadata.resources import Resources
from magnetar.model.names import NamespaceName
from magnetar.testing.memory_metadata import MemoryMetadataStore
from tests.support.at_once import at_once
from tests.support.roles import policies_of

SPACE = NamespaceName.parse("public/default")
TOPIC = SPACE.topic("t")


class CountedList(list[Any]):
    """A list that counts how often it is gone through."""

    walks = 0

    @override
    def __iter__(self) -> Iterator[Any]:
        self.walks += 1
        return super().__iter__()

    @override
    def __contains__(self, one: object) -> bool:
        self.walks += 1
        return super().__contains__(one)


class CountedDict(dict[str, Any]):
    """Names of roles cost the same."""

    walks = 0

    @override
    def __iter__(self) -> Iterator[str]:
        self.walks += 1
        return super().__iter__()


def test_what_is_long_is_gone_through_once_for_each_record() -> None:
    settings = Settings(authorizationAllowWildcardsMatching=True)
    resources = Resources(MemoryMetadataStore(), settings)
    rules = RoleRules(Grants(resources.tenants, resources.namespaces, settings))
    at_once(resources.ensure_defaults())
    admins, reserved = CountedList(["admin"]), CountedList(["app-1"])
    on_space, on_topic = CountedDict({"x*": ["produce"]}), CountedDict({"app-*": ["consume"]})
    resources.tenants.get("public")["adminRoles"] = admins
    policies: Any = policies_of(on_space, {TOPIC.fqn: on_topic}, {"s": reserved})
    resources.namespaces.policies(SPACE)["auth_policies"] = policies
    access = TopicAccess(TOPIC, TopicOperation.CONSUME, "s")
    for _ in range(10):
        assert rules.decide("admin", TenantAccess("public")).allowed
        assert rules.decide("app-1", access).allowed
        assert not rules.decide("app-2", access).allowed
    walks = [one.walks for one in (admins, reserved, on_space, on_topic)]
    assert max(walks) <= 2, walks  # the tuple and the set
    resources.tenants.get("public")["adminRoles"] = []
    assert not rules.decide("admin", TenantAccess("public")).allowed
    resources.namespaces.policies(SPACE)["auth_policies"] = policies_of({"app-*": ["consume"]}, {}, {"s": ["app-2"]})
    assert rules.decide("app-2", access).allowed and not rules.decide("app-1", access).allowed


@given(st.lists(st.text("ab*", max_size=4)), st.text("ab*", max_size=4))
def test_the_patterns_that_a_role_fits(roles: list[str], role: str) -> None:
    expected = {
        one
        for one in roles
        if (one.endswith("*") and role.startswith(one[:-1])) or (one.startswith("*") and role.endswith(one[1:]))
    }
    assert set(RolePatterns(roles).fitting(role)) == expected
