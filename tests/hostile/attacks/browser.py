"""A page in somebody's browser that knows the broker's address: what it can send without being asked."""

from __future__ import annotations

from tests.hostile.raw import TOPIC, Raw
from tests.hostile.victim import Target

_BASE = "/admin/v2/persistent/public/default"
_FORM = {"content-type": "application/x-www-form-urlencoded"}
_CROSS_SITE = {"origin": "https://evil.example", "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}


def pages(target: Target, scale: float) -> str:
    """Forms, fetches without CORS and rebound names; nothing of it may be carried out or read."""
    with Raw(target.broker_port) as raw:
        raw.consumer(f"{TOPIC}victim", "s", initialPosition=1)
        raw.publish(raw.producer(f"{TOPIC}victim"), 10)
    tried = 0
    evil = {"host": f"evil.example:{target.http_port}"}
    for headers in (
        {**_FORM, **_CROSS_SITE},
        {"content-type": "text/plain", **_CROSS_SITE},
        evil,
        {**_FORM, "origin": "null"},
    ):
        for method, path in (
            ("POST", f"{_BASE}/victim/terminate"),
            ("POST", f"{_BASE}/victim/subscription/s/skip_all"),
            ("POST", f"{_BASE}/victim/subscription/s/expireMessages/1"),
            ("POST", f"{_BASE}/victim/truncate"),
            ("DELETE", f"{_BASE}/victim"),
            ("DELETE", f"{_BASE}/victim?force=true"),
            ("PUT", "/admin/v2/tenants/evil"),
            ("PUT", f"{_BASE}/evil"),
        ):
            status, answer = target.http(method, path, b"a=b", headers)
            assert 400 <= status < 500, f"{method} {path} from a page with {headers}: {status} {answer[:200]!r}"
            tried += 1
    for path in (
        f"{_BASE}/victim/stats",
        f"{_BASE}/victim/subscription/s/position/1",
        "/metrics",
        "/admin/v2/clusters",
    ):
        status, _ = target.http("GET", path, b"", evil)
        assert 400 <= status < 500, f"GET {path} through a rebound name: {status}"
        tried += 1
    status, stats = target.rest("GET", f"{_BASE}/victim/stats")
    assert status == 200, stats
    assert stats["subscriptions"]["s"]["msgBacklog"] == 10, stats
    status, page = target.http("GET", "/docs", b"", {})
    assert b"http://" not in page.replace(b"http://www.w3.org", b"") and b"https://" not in page, (
        "/docs loads from elsewhere"
    )
    return f"{tried} requests of a web page refused"
