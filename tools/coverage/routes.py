"""``python -m tools.coverage routes``: which routes of Apache Pulsar a running broker serves, refuses, or gets wrong.

A broker is started and asked for every route of ``pulsar_routes.tsv``, with parts of the path that may exist and
without a body. Whatever answers as itself is *served*: also a 404 that names what is missing, or a 412 about the body.
A 501 is *refused* or *not applicable* as ``refused_routes.tsv`` says. All else is *wrong*: a 501 or a 404 by nobody's
decision, a method that the path does not take, a 500, no answer, and a row of the table about a route that is served.
"""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from magnetar.admin.routes.not_implemented import KINDS, known_routes, refusal_of

SERVED: Final = "served"
WRONG: Final = "wrong"
LAST: Final = ("POST", "/admin/v2/brokers/shutdown")
_TIMEOUT: Final = 20.0
_VALUES: Final = {
    **dict.fromkeys(("tenant", "property"), "coverage"),
    **dict.fromkeys(("domain", "topic-domain"), "persistent"),
    "namespace": "ns", "topic": "t", "cluster": "elsewhere", "bundle": "0x00000000_0x40000000",
}  # fmt: skip
_PREPARED: Final = (
    ("PUT", "/admin/v2/clusters/elsewhere", {"serviceUrl": "http://127.0.0.1:1"}),
    ("PUT", "/admin/v2/tenants/coverage", {"adminRoles": [], "allowedClusters": ["standalone"]}),
    ("PUT", "/admin/v2/namespaces/coverage/ns", None),
    ("PUT", "/admin/v2/persistent/coverage/ns/t", None),
)
_UPGRADE: Final = {
    "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "bWFnbmV0YXIgY292ZXJhZw==",
}  # fmt: skip


class RouteAnswer(NamedTuple):
    """How a running broker answered one route."""

    method: str
    template: str
    kind: str
    """``served``, ``wrong``, or one of the kinds of the table of reasons."""
    said: str


def judged(method: str, template: str, status: int, body: bytes) -> RouteAnswer:
    """What an answer means; status 0: there was none."""
    reason = _reason(body)
    said = f"{status} {reason}".strip()[:200]
    refusal = refusal_of(method, template)
    if status == 501:
        return RouteAnswer(method, template, WRONG if refusal is None else refusal.kind, said)
    unknown = status == 404 and reason == "Not Found"
    wrong_method = status == 405 and reason.startswith(("this path takes ", "Method Not Allowed"))
    if unknown or wrong_method or status in (0, 500):
        return RouteAnswer(method, template, WRONG, said)
    if refusal is not None:
        return RouteAnswer(method, template, WRONG, f"{said}; refused_routes.tsv says that it is {refusal.kind}")
    return RouteAnswer(method, template, SERVED, said)


def asked(port: int) -> Iterator[RouteAnswer]:
    """Ask the broker at that port for every route of Apache Pulsar; it is stopped by the last one."""
    for method, path, body in _PREPARED:
        status, answered = _ask(port, method, path, None if body is None else json.dumps(body).encode())
        if status >= 300:
            raise SystemExit(f"{method} {path}: {status} {answered.decode(errors='replace')}")
    routes = [(method, template) for _, template, methods in known_routes() for method in sorted(methods)]
    # what deletes comes late, so that there is something to ask about
    for method, template in sorted(routes, key=lambda route: (route == LAST, route[0] == "DELETE", route[1])):
        yield judged(method, template, *_ask(port, method, concrete(template)))


def concrete(template: str) -> str:
    """A path of that form, whose parts exist or could exist."""
    return re.sub(r"\{([^}]*)\}", lambda found: _VALUES.get(found[1], "7"), template)


def main() -> int:
    """Print the counts, and what is wrong. Return 1 if anything is."""
    with _broker() as port:
        answers = list(asked(port))
    for kind in (SERVED, *KINDS, WRONG):
        print(f"{sum(answer.kind == kind for answer in answers):5} {kind}")
    print(f"{len(answers):5} routes of Apache Pulsar 4.0.8")
    wrong = [answer for answer in answers if answer.kind == WRONG]
    for answer in wrong:
        print(f"wrong: {answer.method} {answer.template}: {answer.said}")
    return 1 if wrong else 0


def _reason(body: bytes) -> str:
    try:
        found = json.loads(body)
    except ValueError:
        return ""
    return str(found.get("reason", "")) if isinstance(found, dict) else ""


def _ask(port: int, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
    """Status and body; 0 without an answer. A WebSocket's path is asked as its clients do."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT)
    try:
        headers = _UPGRADE if path.startswith("/ws/") else {"Content-Type": "application/json"}
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, b"" if answer.status == 101 else answer.read()
    except (OSError, http.client.HTTPException) as error:
        return 0, json.dumps({"reason": f"no answer: {error}"}).encode()
    finally:
        connection.close()


@contextmanager
def _broker() -> Iterator[int]:
    """Run a broker for the time of the block; its HTTP port."""
    with tempfile.TemporaryDirectory(prefix="magnetar-coverage-") as data:
        settings = ("brokerServicePort=0", "webServicePort=0", "bindAddress=127.0.0.1")
        flags = [part for setting in settings for part in ("--set", setting)]
        command = [sys.executable, "-m", "magnetar.app.main", "standalone", "--data", data, *flags]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            assert process.stdout is not None
            found = re.search(r"http://127\.0\.0\.1:(\d+)", process.stdout.readline())
            if found is None:
                raise SystemExit("the broker did not start")
            yield int(found[1])
        finally:
            process.terminate()
            process.communicate(timeout=60)
