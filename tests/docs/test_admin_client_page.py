"""The snippets of docs/admin-client.md run as they stand, against a running broker."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.support.real_broker import RealBroker, run_on_broker
from tests.support.snippets import snippets

PAGE = "docs/admin-client.md"


def test_the_snippets_run(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        await asyncio.to_thread(_run, broker.node.broker.service.web_service_url)
        status, found = await broker.ask("GET", "/admin/v2/namespaces/public/orders/topics")
        assert (status, len(found)) == (200, 4)

    run_on_broker(tmp_path, scenario)


def _run(url: str) -> None:
    ran = [one for one in snippets() if one.file == PAGE and one.language == "python"]
    assert len(ran) == 3
    for one in ran:
        known: dict[str, Any] = {}
        exec(compile(one.text.replace("http://localhost:8080", url), one.where, "exec"), known)
