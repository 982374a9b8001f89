"""Every REST route, taken from the broker's own OpenAPI description, with boundary values in every part; seeded."""

from __future__ import annotations

import http.client
import json
import random
from typing import Any
from urllib.parse import quote

from tests.hostile.raw import HOST
from tests.hostile.victim import Target

_PARTS = (
    "public", "default", "fuzz", "s", "0", "-1", "2147483648", "99999999999999999999", "x" * 3000, "%00", "%2e%2e",
    "%2F", "%ED%A0%80", "a%20b", "__compaction", "persistent", "(a+)+$", "fuzz-partition-0", "1:2", "null",
    "%F0%9F%98%80",
)  # fmt: skip
_VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 1, 2**31 - 1, 2**31, 2**63 - 1, 2**63, 10**30, 1.5, -0.0, 1e308, "", "3", "x" * 10_000,
    "\ud800", [], {}, [1] * 1000, {"": ""}, {"a": {"b": [None]}}, [[[[[[]]]]]],
)  # fmt: skip
_MUST_STAY = ("public", "default", "witness", "brokers/shutdown")
"""Routes below these names could delete what the witness uses, or stop its broker: anybody's right without a login."""


def _known(name: str, rng: random.Random) -> str:
    usual = {
        "tenant": "fuzz",
        "namespace": "ns",
        "topic": "fuzz",
        "cluster": "standalone",
        "subscription": "s",
        "sub_name": "s",
    }
    if name in usual and rng.random() < 0.7:
        return usual[name]
    return rng.choice(_PARTS)


def _path(template: str, rng: random.Random) -> str:
    path = template
    while "{" in path:
        before, _, rest = path.partition("{")
        name, _, after = rest.partition("}")
        path = before + _known(name.partition(":")[0], rng) + after
    return path


def _body(rng: random.Random, names: list[str]) -> object:
    if rng.random() < 0.5 and names:
        return {name: rng.choice(_VALUES) for name in rng.sample(names, min(len(names), rng.randint(1, 4)))}
    return rng.choice(_VALUES)


def _field_names(document: Any) -> list[str]:
    found = {"retentionTimeInMinutes", "retentionSizeInMB", "limit", "policy", "ledgerId", "entryId", "partitions"}
    for schema in document.get("components", {}).get("schemas", {}).values():
        found.update(schema.get("properties", {}))
    return sorted(found)


def _harmless(path: str) -> bool:
    return not any(f"/{part}" in path for part in _MUST_STAY)


def routes(target: Target, scale: float) -> str:
    """Each operation several times; nothing may be answered with a 5xx but for what is not built (501)."""
    status, document = target.rest("GET", "/openapi.json")
    assert status == 200, f"/openapi.json: {status}"
    target.rest("PUT", "/admin/v2/tenants/fuzz", {"allowedClusters": ["standalone"], "adminRoles": []})
    target.rest("PUT", "/admin/v2/namespaces/fuzz/ns", {})
    target.rest("PUT", "/admin/v2/persistent/fuzz/ns/fuzz")
    names = _field_names(document)
    wrong: list[str] = []
    operations = [
        (method.upper(), path, operation)
        for path, methods in sorted(document["paths"].items())
        for method, operation in sorted(methods.items())
        if method in ("get", "put", "post", "delete", "patch", "head")
    ]
    tried = 0
    connection = http.client.HTTPConnection(HOST, target.http_port, timeout=60)
    for number, (method, template, operation) in enumerate(operations):
        rng = random.Random(number)
        for _ in range(max(1, int(12 * scale))):
            path = _path(template, rng)
            if method != "GET" and not _harmless(path):
                continue
            wanted = [p["name"] for p in operation.get("parameters", ()) if p.get("in") == "query"]
            query = "&".join(
                f"{name}={quote(str(rng.choice(_VALUES)), errors='replace')[:5000]}"
                for name in wanted
                if rng.random() < 0.6
            )
            body = None if method in ("GET", "HEAD") else json.dumps(_body(rng, names)).encode()
            if body is not None and rng.random() < 0.1:
                body = rng.choice((b"", b"{", b"\xff\xfe", b"null", b"[" * 10_000))
            answer = _ask(connection, method, path + (f"?{query}" if query else ""), body)
            tried += 1
            if answer >= 500 and answer != 501:  # not built
                wrong.append(f"{method} {path[:200]}?{query[:100]} {(body or b'')[:100]!r}: {answer}")
    connection.close()
    assert not wrong, f"{len(wrong)} of {tried} answers are 5xx, such as\n  " + "\n  ".join(wrong[:40])
    return f"{tried:,} requests to {len(operations)} operations"


def _ask(connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None) -> int:
    for _ in range(2):
        try:
            connection.request(method, path.replace(" ", "%20"), body, {"content-type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            return answer.status
        except (http.client.HTTPException, ConnectionError):
            connection.close()
    return 400  # closed without an answer, as for a request line that is too long
