"""``/docs``: every route on one static page, without scripts and without anything from other hosts (decision 021)."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from html import escape
from typing import Any, Final

from fastapi import APIRouter, FastAPI
from starlette.responses import Response

_STYLE: Final = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem}"
    "td{padding:.1rem .8rem .1rem 0;vertical-align:top}code{font:13px ui-monospace,monospace}"
)
_POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()}'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)


def routes(app: FastAPI) -> APIRouter:
    """The route of the page that describes ``app``; the page is built for the first request."""
    router = APIRouter()
    pages: list[str] = []

    @router.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        if not pages:
            pages.append(_page(app.openapi()))
        return Response(pages[0], media_type="text/html", headers={"content-security-policy": _POLICY})

    return router


def _page(described: dict[str, Any]) -> str:
    groups: dict[str, list[str]] = {}
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            asked = (found["name"] for found in operation.get("parameters", ()) if found["in"] == "query")
            row = f"<tr><td>{method.upper()}<td><code>{escape(path)}</code><td>{escape(', '.join(asked))}"
            groups.setdefault(operation.get("tags", ["others"])[0], []).append(row)
    tables = "".join(
        f"<h2>{escape(group)}</h2><table>{''.join(rows)}</table>" for group, rows in sorted(groups.items())
    )
    title = escape(f"{described['info']['title']} {described['info']['version']}")
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
        f"<h1>{title}: REST</h1><p>Method, path, parameters of the query. For machines: "
        f'<a href="/openapi.json">/openapi.json</a>.</p>{tables}</html>'
    )
