"""Proxies and their original principals, refusals and their texts (rule 12.13)."""

from __future__ import annotations

import pytest

from magnetar.authorization.access import (
    Access,
    ClusterAccess,
    NamespaceAccess,
    PolicyAccess,
    TenantAccess,
    TopicAccess,
)
from magnetar.authorization.authorizer import Authorizer
from magnetar.authorization.caller import Caller
from magnetar.authorization.decision import Decision
from magnetar.authorization.grants import Grants
from magnetar.authorization.operations import (
    NamespaceOperation,
    PolicyName,
    PolicyOperation,
    TenantOperation,
    TopicOperation,
)
from magnetar.config.settings import Settings
from magnetar.metadata.resources import Resources
from magnetar.model.errors import AuthorizationRefusedError, MagnetarError, NotAuthorizedError, NotFoundError
from magnetar.model.names import NamespaceName, TopicName
from magnetar.testing.memory_metadata import MemoryMetadataStore
from tests.support.at_once import at_once

DEFAULT = NamespaceName.parse("public/default")
TOPIC = TopicName.parse("persistent://public/default/t")
PRODUCE = TopicAccess(TOPIC, TopicOperation.PRODUCE)


@pytest.fixture
def subject() -> Authorizer:
    settings = Settings(superUserRoles="root,super-proxy", proxyRoles="proxy,super-proxy,other-proxy")
    resources = Resources(MemoryMetadataStore(), settings)

    async def fill() -> None:
        await resources.ensure_defaults()
        grants = {"proxy": ["produce"], "alice": ["produce"]}
        await resources.namespaces.update(DEFAULT, auth_policies={"namespace_auth": dict(grants)})  # type: ignore[arg-type]
        await resources.tenants.update("public", {"adminRoles": ["proxy"], "allowedClusters": ["standalone"]})

    at_once(fill())
    return Authorizer(Grants(resources.tenants, resources.namespaces, settings))


@pytest.mark.parametrize(
    ("role", "original", "allowed"),
    [
        ("proxy", "alice", True),
        ("proxy", "bob", False),
        ("super-proxy", "alice", True),
        ("super-proxy", "bob", False),
        ("super-proxy", "root", True),
        ("other-proxy", "alice", False),
        ("proxy", None, False),
        ("proxy", "", False),
        ("proxy", " ", False),
        ("proxy", "proxy", False),
        ("proxy", "super-proxy", False),
        ("proxy", "__websocket_dummy_original_principle", False),
        ("alice", None, True),
        ("alice", "", True),
        ("alice", "alice", True),
        ("alice", "root", False),
        ("root", "alice", False),
        ("alice", "proxy", False),
        ("alice", "__websocket_dummy_original_principle", False),
        (None, None, False),
        (None, "root", False),
    ],
)
def test_a_proxy_and_its_original_principal_must_both_be_allowed(
    subject: Authorizer, role: str | None, original: str | None, allowed: bool
) -> None:
    assert subject.decide(Caller(role, original), PRODUCE).allowed is allowed


@pytest.mark.parametrize(
    ("caller", "produces", "superuser"),
    [
        (Caller("nobody", other_roles=("x", "alice")), True, False),
        (Caller("nobody", other_roles=("x", "root")), True, True),
        (Caller("nobody", other_roles=("x",)), False, False),
        (Caller("proxy", "nobody", other_original_roles=("alice",)), True, False),
        (Caller("proxy", "nobody", other_roles=("alice", "root")), False, False),
        (Caller("super-proxy", "nobody", other_original_roles=("root",)), True, True),
        (Caller("nobody", "root", other_roles=("proxy", "super-proxy")), False, False),
        (Caller("proxy", other_roles=("root",)), False, False),
    ],
)
def test_each_role_of_a_token_may_allow_it(
    subject: Authorizer, caller: Caller, produces: bool, superuser: bool
) -> None:
    """Those of a proxy do not count for whom it speaks for, and only its first role makes it a proxy."""
    assert subject.decide(caller, PRODUCE).allowed is produces
    assert subject.superuser(caller) is superuser


def test_an_administrator_as_proxy_lends_its_power_to_nobody(subject: Authorizer) -> None:
    """Pulsar's check of tenant administrators does not look at the original principal of such a proxy."""
    assert not subject.decide(Caller("proxy", "alice"), TenantAccess("public")).allowed
    assert subject.decide(Caller("super-proxy", "root"), TenantAccess("public")).allowed
    assert subject.superuser(Caller("super-proxy", "root"))
    assert not subject.superuser(Caller("super-proxy", "alice"))


@pytest.mark.parametrize(
    ("role", "original", "superuser"),
    [
        ("root", None, True), ("root", "root", True), ("root", "", True), ("root", "alice", False),
        ("root", "super-proxy", False), ("super-proxy", None, False), ("super-proxy", "super-proxy", False),
        ("alice", "root", False), ("proxy", "root", False), (None, "root", False), (None, None, False),
    ],
)  # fmt: skip
def test_who_speaks_for_another_without_being_its_proxy_is_no_superuser(
    subject: Authorizer, role: str | None, original: str | None, superuser: bool
) -> None:
    """Also where both of them are."""
    assert subject.superuser(Caller(role, original)) is superuser
    assert subject.decide(Caller(role, original), ClusterAccess("x")).allowed is superuser


@pytest.mark.parametrize(
    ("access", "status", "text"),
    [
        (ClusterAccess("list tenants"), 401, "This operation requires super-user access"),
        (TenantAccess("public"), 401, "Don't have permission to administrate resources on this tenant"),
        (
            TenantAccess("public", TenantOperation.LIST_NAMESPACES),
            401,
            "Unauthorized to validateTenantOperation for originalPrincipal [null] and clientAppId [bob] about "
            "operation [LIST_NAMESPACES] on tenant [public]",
        ),
        (
            NamespaceAccess(DEFAULT, NamespaceOperation.GET_TOPICS),
            403,
            "Unauthorized to validateNamespaceOperation for operation [GET_TOPICS] on namespace [public/default]",
        ),
        (
            PolicyAccess(DEFAULT, PolicyName.OFFLOAD, PolicyOperation.WRITE),
            403,
            "Unauthorized to validateNamespacePolicyOperation for operation [WRITE] on namespace [public/default] on "
            "policy [OFFLOAD]",
        ),
        (
            PolicyAccess(DEFAULT, PolicyName.OFFLOAD, PolicyOperation.READ, TOPIC),
            403,
            "Unauthorized to validateTopicPolicyOperation for operation [READ] on topic "
            "[persistent://public/default/t] on policy [OFFLOAD]",
        ),
        (
            PRODUCE,
            401,
            "Unauthorized to validateTopicOperation for operation [PRODUCE] on topic [persistent://public/default/t]",
        ),
    ],
)
def test_refusals_have_pulsars_texts_and_statuses_and_are_recorded(
    subject: Authorizer, access: Access, status: int, text: str
) -> None:
    recorded: list[tuple[Caller, Access, Decision, str]] = []
    subject.audit = lambda *refused: recorded.append(refused)
    bob = Caller("bob")
    with pytest.raises(AuthorizationRefusedError) as refused:
        subject.require(bob, access, request="GET /x")
    assert (refused.value.status, str(refused.value)) == (status, text)
    assert [(caller, what, request) for caller, what, _, request in recorded] == [(bob, access, "GET /x")]
    assert subject.refusals == 1


def test_every_access_of_a_request_is_required(subject: Authorizer) -> None:
    subject.require(Caller("alice"), PRODUCE, PRODUCE)
    with pytest.raises(MagnetarError):
        subject.require(Caller("alice"), PRODUCE, TopicAccess(TOPIC, TopicOperation.CONSUME))


def test_a_tenant_that_does_not_exist_is_not_found(subject: Authorizer) -> None:
    with pytest.raises(NotFoundError, match="Tenant does not exist"):
        subject.require(Caller("alice"), TenantAccess("gone"))


def test_what_is_recorded_is_decided_once(subject: Authorizer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The record is of the decision that let it in, and of nothing before all of it is allowed."""
    made: list[Decision] = []
    records: list[tuple[Access, Decision]] = []
    decide = subject.decide

    def counted(caller: Caller, access: Access) -> Decision:
        made.append(decide(caller, access))
        return made[-1]

    monkeypatch.setattr(subject, "decide", counted)
    subject.audit = lambda caller, access, decision, request: records.append((access, decision))
    other = TenantAccess("public")
    subject.require(Caller("root"), PRODUCE, other, recorded=True)
    assert [access for access, _ in records] == [PRODUCE, other]
    assert all(kept is one for (_, kept), one in zip(records, made, strict=True))
    records.clear()
    with pytest.raises(NotAuthorizedError):
        subject.require(Caller("alice"), PRODUCE, other, recorded=True)
    assert [(access, decision.allowed) for access, decision in records] == [(other, False)]
    records.clear()
    subject.require(Caller("alice"), PRODUCE)
    assert not records
