"""The Python of docs/rest.md and docs/websocket.md does what the pages say, on a broker with a web port."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.real_broker import RealBroker, run_on_broker
from tests.support.snippets import python

SAID = {"docs/rest.md": ":0:-1\n", "docs/websocket.md": "ok\nalice b'three apples'\n"}
"""By page, the end of what it prints."""


@pytest.mark.parametrize("page", SAID)
def test_the_snippets_of_a_page(page: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = [one for one in python(spark=False) if one.file == page]
    assert found

    async def scenario(broker: RealBroker) -> None:
        web = broker.node.broker.service.web_service_url.removeprefix("http://")
        for one in found:
            code = compile(one.text.replace("localhost:8080", web), one.where, "exec")
            await asyncio.to_thread(exec, code, {"__name__": "page"})

    run_on_broker(tmp_path, scenario)
    assert capsys.readouterr().out.endswith(SAID[page])
