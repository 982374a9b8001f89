"""A broker's admin interface, seen from outside: a status and what came with it."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass

from tests.conformance.answers import Json, text

SECONDS_MAX = 30.0


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: Json

    def told(self) -> Json:
        """Status and, for a refusal, its reason."""
        if self.status < 400:
            return {"status": self.status} if self.body in (None, "") else {"status": self.status, "body": self.body}
        reason = self.body.get("reason") if isinstance(self.body, dict) else self.body
        return {"status": self.status, "reason": text(reason) if isinstance(reason, str) else reason}


def call(base: str, method: str, path: str, body: Json = None, headers: Mapping[str, str] | None = None) -> Answer:
    """One request, to version 2 unless the path begins with a slash; a JSON document is parsed, else kept as text."""
    data = None if body is None else json.dumps(body).encode()
    whole = f"{base}{path}" if path.startswith("/") else f"{base}/admin/v2/{path}"
    request = urllib.request.Request(whole, data, dict(headers or {}), method=method)
    if data is not None:
        request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(request, timeout=SECONDS_MAX) as reply:
            status, raw = reply.status, reply.read()
    except urllib.error.HTTPError as error:
        status, raw = error.code, error.read()
    try:
        return Answer(status, json.loads(raw) if raw else None)
    except ValueError:
        return Answer(status, raw.decode(errors="replace"))
