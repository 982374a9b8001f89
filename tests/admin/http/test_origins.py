"""What a web page can make a browser send is refused; what programs send passes (decision 021)."""

from __future__ import annotations

import re
from typing import Literal

import pytest

from magnetar.admin.http.origins import HostNames, RequestOrigin, refusal
from magnetar.authorization.permission_table.route_permissions import ROUTE_PERMISSIONS
from magnetar.config.settings import Settings
from tests.admin.conftest import World, world
from tests.admin.rest_client import RestClient

LOOPBACK = HostNames((), on_loopback=True)
NETWORK = HostNames(("Pulsar.Example.com", ""), on_loopback=False)
TENANT = "/admin/v2/tenants/public"
VALUES = {"tenant": "ref", "namespace": "main", "topic": "t", "domain": "persistent", "policy": "retention"}


def asked(
    method: str = "POST", path: str = TENANT, *, host: str | None = "localhost:8080", origin: str | None = None,
    site: str | None = None, content_type: str | None = None, scheme: Literal["http", "https"] = "http",
) -> RequestOrigin:  # fmt: skip
    return RequestOrigin(method, path, host, origin, site, content_type, scheme)


@pytest.mark.parametrize(
    "host",
    ["localhost", "localhost:8080", "LOCALHOST.:1", "a.localhost", "127.0.0.1:8080", "10.1.2.3", "[::1]:8080", "[::1]"],
)  # fmt: skip
def test_names_of_the_loopback_and_addresses_pass(host: str) -> None:
    assert LOOPBACK.include(host)
    assert NETWORK.include(host)


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "", ":8080", "1.2.3"]
)
def test_other_names_are_refused(host: str) -> None:
    assert not LOOPBACK.include(host)
    assert not NETWORK.include(host)


@pytest.mark.parametrize(
    "host", ["broker", "pulsar-0.pulsar.default.svc.cluster.local", "b.internal:80", "laptop.local"]
)
def test_names_that_public_dns_cannot_resolve_pass(host: str) -> None:
    assert NETWORK.include(host)
    assert not LOOPBACK.include(host)


def test_listed_names_pass() -> None:
    assert NETWORK.include("pulsar.example.COM:8080")
    assert HostNames(("*",), on_loopback=True).include("anything.example")
    settings = Settings(webServiceAllowedHosts=" a.example , b.example", advertisedAddress="c.example")
    names = HostNames.of(settings)
    assert all(map(names.include, ("a.example", "b.example:1", "c.example")))
    assert not names.include("d.example")


PROGRAMS = {
    "Java admin, body-less": asked(content_type="application/json"),
    "Java admin, partitions with properties": asked("PUT", content_type="application/vnd.partitioned-topic+json"),
    "pulsarctl": asked("PUT", content_type="application/json"),
    "curl -X POST": asked(),
    "curl -X DELETE": asked("DELETE", host="127.0.0.1:8080"),
    "requests, data as a text": asked("PUT"),
    "Prometheus": asked("GET", "/metrics", host="10.0.0.7:8080"),
    "HTTP/1.0 health check": asked("GET", "/admin/v2/brokers/ready", host=None),
    "our own page": asked("GET", "/openapi.json", site="same-origin"),
    "typed into a browser": asked("GET", site="none"),
    "an old browser's own page": asked("GET", origin="http://localhost:8080"),
    "default port": asked("GET", host="localhost", origin="http://localhost:80"),
    "own page by TLS": asked("GET", host="localhost:8443", origin="https://localhost:8443", scheme="https"),
    "default port of TLS": asked("GET", host="localhost:443", origin="https://localhost", scheme="https"),
    "a proxy that takes TLS off": asked("GET", host="localhost", origin="https://localhost"),
    "a link to the description": asked("GET", "/docs", site="cross-site"),
    "GET with a form's type": asked("GET", content_type="text/plain"),
    "Node client's tests, a number of partitions": asked("PUT", content_type="text/plain"),
}  # fmt: skip


@pytest.mark.parametrize("request_", PROGRAMS.values(), ids=PROGRAMS)
def test_requests_of_programs_pass(request_: RequestOrigin) -> None:
    assert refusal(request_, LOOPBACK) is None


FORMS = (
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "text/plain",
    "Text/Plain; charset=utf-8",
)
PAGES = {
    "form": asked(origin="http://evil.example", site="cross-site", content_type=FORMS[0]),
    "form without a referrer": asked(origin="null", site="cross-site"),
    "older browser": asked(origin="http://evil.example"),
    "older browser, opaque": asked(origin="null"),
    "nonsense": asked(origin="http://[", host="localhost"),
    "another port of this machine": asked(origin="http://localhost:3000", site="same-site"),
    "older browser, another port": asked(origin="http://localhost:3000"),
    "image": asked("GET", site="cross-site"),
    "link to a GET that works": asked("GET", "/admin/v2/brokers/health", site="cross-site"),
    "post to the description": asked("POST", "/docs", site="cross-site"),
    "plain page of the same name": asked(host="localhost", origin="http://localhost", scheme="https"),
    "HTTPS page": asked(origin="https://localhost:8080.evil.example"),
}


@pytest.mark.parametrize("request_", PAGES.values(), ids=PAGES)
def test_requests_of_web_pages_are_refused(request_: RequestOrigin) -> None:
    found = refusal(request_, LOOPBACK)
    assert found is not None
    assert found.status == 403
    assert "browser" in found.reason


@pytest.mark.parametrize(
    ("method", "kind"),
    [("POST", kind) for kind in FORMS]
    + [(method, kind) for method in ("PUT", "DELETE", "PATCH") for kind in FORMS[:2]],
)
def test_content_types_of_forms_are_refused(method: str, kind: str) -> None:
    """Browsers that send neither Origin nor Sec-Fetch-Site are recognised by the content type, even of empty forms."""
    found = refusal(asked(method, content_type=kind), LOOPBACK)
    assert found is not None
    assert (found.status, "application/json" in found.reason) == (415, True)


def test_rebinding_names_the_setting() -> None:
    found = refusal(asked("GET", host="evil.example:8080", site="same-origin"), LOOPBACK)
    assert found is not None
    assert found.status == 403
    assert "webServiceAllowedHosts" in found.reason
    assert "evil.example" in found.reason


# through the application -----------------------------------------------------------------------------------------


def test_a_refused_request_changes_nothing(own_world: World) -> None:
    rest = own_world.rest
    rest.put("/admin/v2/namespaces/ref/left")
    for headers in ({"host": "evil.example"}, {"origin": "http://evil.example"}, {"sec-fetch-site": "same-site"}):
        refused = rest.delete("/admin/v2/namespaces/ref/left", headers=headers)
        assert refused.status_code == 403
        assert refused.json()["reason"]
        assert rest.get("/admin/v2/tenants", headers=headers).status_code == 403
    assert rest.post("/admin/v2/namespaces/ref/left/clearBacklog", data={"a": "b"}).status_code == 415
    assert rest.get("/admin/v2/namespaces/ref/left").status_code == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/admin/v3/functions/ref/main/f"), ("PUT", "/admin/v3/functions/ref/main/f"),
        ("POST", "/admin/v3/sinks/ref/main/s"), ("PUT", "/admin/v3/sources/ref/main/s"),
        ("POST", "/admin/v3/packages/function/ref/main/p/v1"), ("POST", "/admin/v3/packages/function/ref/main/p/v1/"),
        ("POST", "/admin/v3/packages/function/ref%2Fx/main/p/v1"),
    ],
)  # fmt: skip
def test_an_upload_to_what_is_not_here_is_told_why(shared_world: World, method: str, path: str) -> None:
    answered = shared_world.rest.request(method, path, files={"data": ("f.jar", b"x" * 300_000)})
    assert (answered.status_code, "not available in magnetar: " in answered.json()["reason"]) == (501, True)
    page = shared_world.rest.request(method, path, files={"data": b"x"}, headers={"origin": "http://evil.example"})
    assert page.status_code == 403


def test_forms_reach_no_route_that_does_something(own_world: World) -> None:
    """Whatever a route is, and however its path is written."""
    answers = {
        (method, route): own_world.rest.request(method, path, files={"data": b"x"}).status_code
        for method, route, path in uploads()
    }
    assert len(answers) > 150
    assert {route: status for route, status in answers.items() if status != 415} == {}


def uploads() -> list[tuple[str, str, str]]:
    found = []
    for method, route in sorted(ROUTE_PERMISSIONS):
        if method not in ("GET", "HEAD") and route != "/{path}":
            path = re.sub(r"\{(\w+)\}", lambda one: VALUES.get(one[1], "7"), route)
            found += [(method, route, path), (method, route + " /", path + "/")]
    return found


def test_names_may_be_listed() -> None:
    rest = world(Settings(webServiceAllowedHosts="broker.example")).rest
    assert rest.get(TENANT, headers={"host": "broker.example:8080"}).status_code == 200


def test_no_preflight_is_granted(shared_world: World) -> None:
    headers = {"origin": "http://evil.example", "access-control-request-method": "DELETE"}
    refused = shared_world.rest.request("OPTIONS", TENANT, headers=headers)
    assert refused.status_code == 403
    assert not [name for name in refused.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", TENANT), ("GET", "/nope"), ("PATCH", TENANT), ("GET", "/metrics"), ("GET", "/docs"), ("PUT", TENANT)],
)  # fmt: skip
def test_every_answer_has_the_protecting_headers(shared_world: World, method: str, path: str) -> None:
    headers = shared_world.rest.request(method, path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["content-security-policy"].startswith("default-src 'none'")


def test_the_docs_page_loads_nothing(shared_world: World) -> None:
    page = shared_world.rest.get("/docs")
    assert page.status_code == 200
    assert "{topic}/partitions" in page.text
    assert "<script" not in page.text
    assert not re.findall(r"(?:src|href|action)=.?(?:https?:)?//", page.text)
    assert "script" not in page.headers["content-security-policy"]
    for gone in ("/redoc", "/docs/oauth2-redirect"):
        assert shared_world.rest.get(gone).status_code == 404


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("/admin/v2/persistent/ref/main/a%ED%A0%80", "path"),
        ("/admin/v2/persistent/ref/main/a%FF", "path"),
        ("/admin/v2/namespaces/ref/main/topics?mode=%FF", "query"),
    ],
)
def test_paths_and_queries_are_utf8(rest: RestClient, path: str, named: str) -> None:
    refused = rest.get(path)
    assert refused.status_code == 400
    assert named in refused.json()["reason"]
