"""Every route asks the permission table first: all rows with all roles, and what tries to get around them.

``route_rights.tsv`` says which right each route needs, taken from Apache Pulsar 4.0.8 and not from our table; where
Pulsar asks nothing (transactions), it is what docs/differences.md says.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from magnetar.admin.application import RestApplication, create_app
from magnetar.admin.http import authorization
from magnetar.admin.http.authorization import guard
from magnetar.admin.http.parameters import path_parts
from magnetar.admin.http.router import RestRoute
from magnetar.admin.routes.namespaces import namespace_policies
from magnetar.admin.routes.topics import topic_policies
from magnetar.authorization.access import Access
from magnetar.authorization.authorizer import Authorizer
from magnetar.authorization.caller import Caller
from magnetar.authorization.decision import Decision
from magnetar.authorization.permission_table.policy_words import NAMESPACE_POLICIES, TOPIC_POLICIES
from magnetar.authorization.permission_table.route_permissions import ROUTE_PERMISSIONS
from magnetar.config.settings import Settings
from magnetar.metadata.resources import Resources
from magnetar.model.policies import JsonObject
from tests.admin.fake_broker import FakeBroker
from tests.support.granted import granted

SETTINGS = Settings(authorizationEnabled=True, superUserRoles="root", proxyRoles="proxy")
REACHED: Final = 299
"""The status of all routes here: they say which they are instead of doing anything."""
NOBODY = Caller(None)

ROLES: Final = ("stranger", "producer", "on-topic", "consumer", "limited", "other-admin", "admin", "root")
RIGHTS: Final[Mapping[str, tuple[str, ...]]] = {
    "login": ROLES,
    "lookup": ("producer", "on-topic", "consumer", "limited", "admin", "root"),
    "produce": ("producer", "on-topic", "admin", "root"),
    "consume": ("consumer", "limited", "admin", "root"),
    "subscription": ("consumer", "admin", "root"),
    "namespace": ("producer", "consumer", "limited", "admin", "root"),
    "admin": ("admin", "root"),
    "root": ("root",),
}
"""Who has a right: ``limited`` may consume, but not with the subscription; ``on-topic`` has a grant on t alone."""
RIGHT_OF: Final = {
    (method, path): right
    for line in Path(__file__).with_name("route_rights.tsv").read_text("utf-8").splitlines()[1:]
    for method, path, right in [line.split("\t")]
}
TOPICS: Final = ("t", "t-partition-0", "t-partition-00", "__change_events", "%74", "x%20y")
"""Names that the path may have for the topic: itself, a partition, encoded. Only of the first three t decides."""


class Door:
    """An application whose routes do nothing but say that they were reached."""

    def __init__(self, app: RestApplication, authorizer: Authorizer) -> None:
        self.app = app
        self.authorizer = authorizer

    def ask(self, method: str, path: str, caller: Caller | None) -> tuple[int, bytes]:
        return asyncio.run(self._ask(method, path, caller))

    async def _ask(self, method: str, path: str, caller: Caller | None) -> tuple[int, bytes]:
        sent: list[Any] = []
        scope = {
            "type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": b"",
            "headers": [(b"host", b"127.0.0.1:8080")], "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8080),
            "scheme": "http", "http_version": "1.1", "root_path": "", "asgi": {"version": "3.0"},
            "state": {} if caller is None else {"caller": caller},
        }  # fmt: skip

        async def receive() -> Any:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])

    def all_as(self, requests: list[tuple[str, str]], caller: Caller | None) -> list[tuple[int, bytes]]:
        async def asked() -> list[tuple[int, bytes]]:
            return [await self._ask(method, path, caller) for method, path in requests]

        return asyncio.run(asked())


async def reached(self: RestRoute, scope: Scope, receive: Receive, send: Send) -> None:
    status = REACHED if scope["method"] in self.methods else 405  # as the real one
    await PlainTextResponse(self.path_format, status)(scope, receive, send)


def authorizer_of(settings: Settings = SETTINGS) -> tuple[Resources, Authorizer]:
    grants: JsonObject = {
        "namespace_auth": {"producer": ["produce"], "consumer": ["consume"], "limited": ["consume"]},
        "destination_auth": {
            f"{domain}://ref/main/t": {"on-topic": ["produce"]} for domain in ("persistent", "non-persistent")
        },
        "subscription_auth_roles": {"s1": ["consumer"]},
    }
    return granted(settings, {"ref": "admin", "other": "other-admin"}, {"ref/main": grants})


@pytest.fixture(scope="module")
def door() -> Iterator[Door]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(RestRoute, "handle", reached)
        resources, authorizer = authorizer_of()
        yield Door(
            create_app(FakeBroker(resources, SETTINGS).ports(), resources, SETTINGS, None, authorizer), authorizer
        )


def concrete(template: str, *, domain: str = "persistent", topic: str = "t", policy: str = "retention") -> str:
    values = {
        "tenant": "ref", "namespace": "main", "domain": domain, "topic": topic, "subscription": "s1", "subName": "s1",
        "policy": policy, "bundle": "0x00000000_0x40000000", "path": "admin/v2/none",
        "configName": "maxTenants", "configValue": "1", "resourcegroup": "g",
    }  # fmt: skip
    for name, value in values.items():
        template = template.replace("{" + name + "}", value)
    for name in ("cluster", "key", "value", "role", "version", "count", "seconds", "timestamp", "position", "ledger"):
        template = template.replace("{" + name + "}", "1")
    template = template.replace("{partition}", "1")
    for name in ("clusterName", "brokerId", "broker", "domainName", "policyName", "bookie", "group"):
        template = template.replace("{" + name + "}", "1")
    for name in ("entry", "timeout", "mostSigBits", "leastSigBits", "ledgerId", "entryId", "coordinatorId"):
        template = template.replace("{" + name + "}", "1")
    assert "{" not in template, template
    return template


def leaves(app: RestApplication) -> set[tuple[str, str]]:
    return {(method, route.path_format) for route in app.routes for method in route.methods}


def test_every_route_has_a_row_and_every_row_a_route(door: Door) -> None:
    assert leaves(door.app) == set(ROUTE_PERMISSIONS)


def test_every_row_has_its_right(door: Door) -> None:
    assert set(RIGHT_OF) == set(ROUTE_PERMISSIONS)
    assert set(RIGHT_OF.values()) == set(RIGHTS)


@pytest.mark.parametrize("domain", ["persistent", "non-persistent"])
@pytest.mark.parametrize("role", ROLES)
def test_every_route_lets_in_who_has_its_right_and_nobody_else(door: Door, role: str, domain: str) -> None:
    """Both domains and all kinds of names alike; s1 is left to the role consumer."""
    cases = []
    for (method, path), right in RIGHT_OF.items():
        for topic in TOPICS if "{topic}" in path else ["t"]:
            of_t = topic in ("t", "t-partition-0", "%74")
            # the broker's own topics are written by administrators only
            needed = "admin" if right == "produce" and topic == "__change_events" else right
            allowed = role in RIGHTS[needed] and (role != "on-topic" or of_t or right == "login")
            cases.append((method, concrete(path, domain=domain, topic=topic), allowed))
    answers = door.all_as([(method, path) for method, path, _ in cases], Caller(role))
    wrong = [
        (method, path, allowed, status, body)
        for (method, path, allowed), (status, body) in zip(cases, answers, strict=True)
        if (status == REACHED) != allowed or (not allowed and status not in (401, 403))
    ]
    assert wrong == []


def test_without_a_caller_nothing_is_allowed_that_needs_a_right(door: Door) -> None:
    """Authentication stands in front; should it ever not, nobody is let in by that."""
    for caller in (None, NOBODY, Caller(""), Caller("proxy"), Caller("root", "alice"), Caller("proxy", "stranger")):
        requests = [(method, concrete(path)) for (method, path), right in RIGHT_OF.items() if right != "login"]
        assert {status for status, _ in door.all_as(requests, caller)} <= {401, 403}, caller


def test_a_proxy_needs_the_right_of_both(door: Door) -> None:
    assert door.ask("GET", "/admin/v2/tenants", Caller("proxy", "root"))[0] == 401
    assert door.ask("GET", "/admin/v2/tenants", Caller("root", "root"))[0] == REACHED


@pytest.mark.parametrize(
    ("role", "method", "path", "status", "reason"),
    [
        ("stranger", "GET", "/admin/v2/tenants", 401, "This operation requires super-user access"),
        (
            "stranger", "GET", "/admin/v2/namespaces/ref/main/topics", 403,
            "Unauthorized to validateNamespaceOperation for operation [GET_TOPICS] on namespace [ref/main]",
        ),
        (
            "producer", "GET", "/admin/v2/persistent/ref/main/t/subscriptions", 401,
            "Unauthorized to validateTopicOperation for operation [GET_SUBSCRIPTIONS] on topic [persistent://ref/main/t]",
        ),
        (
            "consumer", "POST", "/admin/v2/persistent/ref/main/t/retention", 403,
            "Unauthorized to validateTopicPolicyOperation for operation [WRITE] on topic [persistent://ref/main/t] on "
            "policy [RETENTION]",
        ),
        (
            "consumer", "GET", "/admin/v2/namespaces/ref/main/messageTTL", 403,
            "Unauthorized to validateNamespacePolicyOperation for operation [READ] on namespace [ref/main] on policy "
            "[TTL]",
        ),
        (
            "admin", "PUT", "/admin/v2/namespaces/other/new", 401,
            "Unauthorized to validateTenantOperation for originalPrincipal [null] and clientAppId [admin] about "
            "operation [CREATE_NAMESPACE] on tenant [other]",
        ),
        (
            "consumer", "PUT", "/admin/v2/namespaces/ref/main/property/a/b", 401,
            "Don't have permission to administrate resources on this tenant",
        ),
        ("stranger", "GET", "/admin/v2/namespaces/none/main/topics", 404, "Tenant does not exist"),
        (
            "stranger", "DELETE", "/admin/v2/tenants/none", 401,
            "Unauthorized to validateBothTenantOperationAndSuperUser for originalPrincipal [null] and clientAppId "
            "[stranger] about operation [DELETE_TENANT] ",
        ),
    ],
)  # fmt: skip
def test_refusals_are_pulsars(door: Door, role: str, method: str, path: str, status: int, reason: str) -> None:
    answered, body = door.ask(method, path, Caller(role))
    assert (answered, body.decode()) == (status, f'{{"reason":"{reason}"}}')


@pytest.mark.parametrize(
    "path",
    [
        "/admin/v2/persistent/ref/main/t/stats/",
        "/admin/v2//persistent/ref/main/t/stats",
        "/admin/v2/persistent/ref/main/t/./stats",
        "/admin/v2/persistent/other/../ref/main/t/stats",
        "/admin/v2/persistent/public/default/..%2F..%2Fref%2Fmain%2Ft/stats",
        "/admin/v2/persistent/public/default/t%2Fstats",
        "/admin/v2/persistent/ref%2Fmain/default/t/stats",
        "/admin/v2/persistent/ref/main%00/t/stats",
        "/admin/v2/persistent/ref/main/t;a=b/stats",
        "/admin/v2/%70ersistent/ref/main/t/stats",
        "/admin/v2/PERSISTENT/ref/main/t/stats",
        "/Admin/v2/tenants",
        "/admin/v2/tenants/",
        "/admin/v2/tenants//",
        "/admin/v2/tenants/%2e%2e",
        "/admin/v2/tenants/..",
        "/admin/v2/tenants%3f",
        "/admin/v2/persistent/ref/main/t/stats%20",
        "/admin/v2/persistent/re%66/main/t/stats",
        "/admin/v2/persistent/r%c3%a9f/main/t/stats",
        "/admin/v2/persistent/ref/main/%FF%FE/stats",
        "/admin/v2/persistent/ref/main/t-partition--1/stats",
        "/admin/v2/persistent/ref/main/" + "x" * 9000 + "/stats",
    ],
)
def test_no_way_of_writing_a_path_gets_around_the_table(door: Door, path: str) -> None:
    """A stranger reaches nothing but the answer of unknown paths."""
    status, body = door.ask("GET", path, Caller("stranger"))
    assert status in (400, 401, 403, 404, 412) or (status, body) == (REACHED, b"/{path}"), (status, body)
    assert len(body) < 8000


@pytest.mark.parametrize("caller", [None, Caller("stranger"), Caller("consumer"), Caller("admin"), Caller("root")])
def test_who_may_not_get_may_not_ask_for_the_head(door: Door, caller: Caller | None) -> None:
    paths = sorted({concrete(path) for method, path in ROUTE_PERMISSIONS if method == "GET"})
    gets, heads = (door.all_as([(method, path) for path in paths], caller) for method in ("GET", "HEAD"))
    assert heads == gets
    assert caller == Caller("root") or {status for status, _ in heads} & {401, 403}


@pytest.mark.parametrize("method", ["OPTIONS", "TRACE", "PATCH", "GE", "get", "PROPFIND", "CONNECT"])
def test_no_other_method_gets_around_the_table(door: Door, method: str) -> None:
    paths = sorted({concrete(path) for _, path in ROUTE_PERMISSIONS if path not in ("/openapi.json", "/{path}")})
    answers = door.all_as([(method, path) for path in paths], Caller("stranger"))
    # OPTIONS and PATCH end at the last route, the others at none; a route says here which it is
    assert {answer for answer in answers if answer[0] != 405} <= {(REACHED, b"/{path}")}


def test_a_route_without_a_row_fails_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    resources, authorizer = authorizer_of()
    broker = FakeBroker(resources, SETTINGS)
    for gone in (("GET", "/admin/v2/tenants"), ("GET", "/docs"), ("HEAD", "/openapi.json"), ("OPTIONS", "/{path}")):
        left = {route: row for route, row in ROUTE_PERMISSIONS.items() if route != gone}
        monkeypatch.setattr(authorization, "ROUTE_PERMISSIONS", left)
        with pytest.raises(LookupError, match=f"{gone[0]} .* has no row in the permission table"):
            create_app(broker.ports(), resources, SETTINGS, None, authorizer)


def test_a_route_of_any_method_fails_the_start() -> None:
    async def anything() -> Response:
        raise AssertionError

    with pytest.raises(LookupError, match="permission table"):
        guard([RestRoute("/x", anything, ())], authorizer_of()[1])


def test_every_word_of_a_policy_has_its_name() -> None:
    assert set(NAMESPACE_POLICIES) == set(namespace_policies.POLICIES)
    assert set(TOPIC_POLICIES) == set(topic_policies.POLICIES)


def test_the_delayed_delivery_of_a_namespace_is_changed_by_superusers(door: Door) -> None:
    path = "/admin/v2/namespaces/ref/main/delayedDelivery"
    assert door.ask("GET", path, Caller("admin"))[0] == REACHED
    for method in ("POST", "DELETE"):
        assert door.ask(method, path, Caller("admin"))[0] == 401
        assert door.ask(method, path, Caller("root"))[0] == REACHED


def test_refusals_and_changes_are_recorded(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[tuple[str, bool, str]] = []

    def record(caller: Caller, access: Access, decision: Decision, request: str) -> None:
        heard.append((caller.named, decision.allowed, request))

    monkeypatch.setattr(door.authorizer, "record", record)
    topic = "/admin/v2/persistent/ref/main/t"
    door.ask("GET", topic + "/stats", Caller("stranger"))
    door.ask("GET", topic + "/stats", Caller("consumer"))
    door.ask("POST", topic + "/terminate", Caller("admin"))
    door.ask("GET", topic + "/examinemessage", Caller("consumer"))
    assert heard == [
        ("stranger", False, f"GET {topic}/stats"),
        ("admin", True, f"POST {topic}/terminate"),
        ("consumer", True, f"GET {topic}/examinemessage"),
    ]


def test_plus_is_a_space_for_routes_and_permissions_alike(door: Door) -> None:
    """A route acts upon the names that permissions were asked for: ``+`` is a space where Apache Pulsar reads one."""
    seen = set()
    for route in door.app.routes:
        read = {one.name: one.read for one in route._arguments._ones if one.where == "path"}
        asked = path_parts(dict.fromkeys(read, "a+b%2Bc%20d"), route.path_format)
        for name in read.keys() & {"tenant", "namespace", "topic", "subscription", "subName"}:
            assert read[name]("a+b%2Bc%20d") == asked[name], (route.path_format, name)
            seen.add((name, asked[name]))
    space, plus, twice = "a b+c d", "a+b+c d", "a b c d"
    assert seen >= {("topic", space), ("subName", plus), *(("subscription", name) for name in (space, plus, twice))}
