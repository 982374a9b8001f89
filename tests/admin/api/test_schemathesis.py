"""Requests that schemathesis makes of the description: none is answered with an error of the broker.

One of each route, always the same ones; ``SCHEMATHESIS_EXAMPLES=100`` asks every operation for so many.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings

from magnetar.admin_api.description import document
from tests.support.described_routes import route_of
from tests.support.real_broker import RealBroker, run_on_broker

EXAMPLES = int(os.environ.get("SCHEMATHESIS_EXAMPLES", "1"))
NOT_ASKED = {"brokers_shutdown"}
NOT_BUILT = (501, 503)
"""What is refused by name, and transactions while there are none; the broker says so with a reason."""
LISTENER = "the broker do not have"
"""Apache Pulsar's own 500 for a listener that is not advertised."""


def _broken(url: str) -> list[str]:
    """Ask, and return the answers that are errors of the broker."""
    described = schemathesis.openapi.from_dict(document("1"))
    found: list[str] = []
    asked_of: set[tuple[str, str]] = set()
    with httpx.Client(base_url=url, timeout=30) as client:
        for one in described.get_all_operations():
            parsed: Any = one
            operation = parsed.ok()
            route = operation.method, route_of(operation.path)
            if operation.definition.raw["operationId"] in NOT_ASKED or (EXAMPLES == 1 and route in asked_of):
                continue
            asked_of.add(route)

            @settings(
                max_examples=EXAMPLES, derandomize=True, database=None, deadline=None,
                phases=[Phase.generate], suppress_health_check=list(HealthCheck),
            )  # fmt: skip
            @given(case=operation.as_strategy())
            def ask(case: Any) -> None:
                asked = case.as_transport_kwargs(base_url=url)
                answer = client.request(
                    asked["method"], asked["url"], params=asked.get("params"), json=asked.get("json"),
                    headers={"content-type": "application/json"},
                )  # fmt: skip
                if answer.status_code >= 500 and answer.status_code not in NOT_BUILT and LISTENER not in answer.text:
                    found.append(f"{asked['method']} {asked['url']} {asked.get('json')!r}: {answer.text[:300]}")

            ask()
    return found


@pytest.mark.slow
def test_no_request_breaks_the_broker(tmp_path: Path) -> None:
    async def scenario(broker: RealBroker) -> None:
        found = await asyncio.to_thread(_broken, broker.node.broker.service.web_service_url)
        assert found == [], "\n" + "\n".join(found)

    run_on_broker(tmp_path, scenario, transactionCoordinatorEnabled=True)
