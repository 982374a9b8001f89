"""``/openapi.json`` and ``/docs``: every operation, for machines and on one static page.

The page has no scripts and nothing from other hosts (decision 021). Both are made from the table of operations, which
is imported for the first request, in a thread (decision 038).
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from base64 import b64encode
from html import escape
from typing import Any, Final

from starlette.responses import Response

from magnetar import __version__
from magnetar.admin.http.route_group import RouteGroup

_STYLE: Final = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem}"
    "td{padding:.1rem .8rem .1rem 0;vertical-align:top}code{font:13px ui-monospace,monospace}"
)
_POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()}'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)


class Documents:
    """The description of one broker's REST interface in both forms, each built once."""

    def __init__(self, *, authentication: bool) -> None:
        self._authentication = authentication
        self._building = asyncio.Lock()
        self._found: tuple[bytes, str] | None = None

    async def found(self) -> tuple[bytes, str]:
        """Return /openapi.json and /docs."""
        async with self._building:
            if self._found is None:
                self._found = await asyncio.to_thread(self._built)
            return self._found

    def _built(self) -> tuple[bytes, str]:
        described = self.described()
        return json.dumps(described, ensure_ascii=False, separators=(",", ":")).encode(), _page(described)

    def described(self) -> dict[str, Any]:
        """Build the description."""
        from magnetar.admin_api.description import document

        return document(__version__, authentication=self._authentication)


def routes(documents: Documents) -> RouteGroup:
    """Build the routes of this group."""
    router = RouteGroup()

    @router.route("/openapi.json", "GET", "HEAD")
    async def openapi() -> Response:
        described, _ = await documents.found()
        return Response(described, media_type="application/json")

    @router.get("/docs")
    async def docs() -> Response:
        _, page = await documents.found()
        return Response(page, media_type="text/html", headers={"content-security-policy": _POLICY})

    return router


def _page(described: dict[str, Any]) -> str:
    sections = {tag["name"]: tag["description"] for tag in described["tags"]}
    rows: dict[str, list[str]] = {name: [] for name in sections}
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            rows[operation["tags"][0]].append(_row(described, path, method, operation))
    tables = "".join(
        f"<h2>{escape(name)}</h2><p>{escape(text)}</p><table>{''.join(rows[name])}</table>"
        for name, text in sections.items()
    )
    title = escape(f"{described['info']['title']} {described['info']['version']}")
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
        f"<h1>{title}: REST</h1><p>Method, path, what it does, parameters of the query, statuses. For machines: "
        f'<a href="/openapi.json">/openapi.json</a>, with the schemas of all bodies and answers.</p>{tables}</html>'
    )


def _row(described: dict[str, Any], path: str, method: str, operation: dict[str, Any]) -> str:
    asked = ", ".join(one["name"] for one in operation["parameters"] if one.get("in") == "query")
    answers = (
        f'<abbr title="{escape(_meaning(described, answer))}">{status}</abbr>'
        for status, answer in operation["responses"].items()
    )
    return (
        f"<tr><td>{method.upper()}<td><code>{escape(path)}</code><td>{escape(operation['summary'])}"
        f"<td>{escape(asked)}<td>{' '.join(answers)}"
    )


def _meaning(described: dict[str, Any], answer: dict[str, Any]) -> str:
    if "$ref" in answer:
        answer = described["components"]["responses"][answer["$ref"].rpartition("/")[2]]
    return str(answer["description"])
