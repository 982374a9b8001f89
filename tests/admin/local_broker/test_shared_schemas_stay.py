"""Topics of both domains share a schema (rule 10.2): it goes with the last of them, partitioned or not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.real_broker import RealBroker, run_on_broker

PLACE = "/admin/v2/{}/public/default/x"
SCHEMA = "/admin/v2/schemas/public/default/x/schema"
GIVEN = {"type": "STRING", "schema": "", "properties": {}}


@pytest.mark.parametrize(
    ("going", "staying"),
    [("/partitions", ""), ("/partitions", "/partitions"), ("", "/partitions"), ("", "")],
)
@pytest.mark.parametrize("domain", ["persistent", "non-persistent"])
def test_a_schema_stays_with_the_topic_of_the_other_domain(
    tmp_path: Path, domain: str, going: str, staying: str
) -> None:
    other = "persistent" if domain == "non-persistent" else "non-persistent"

    async def act(broker: RealBroker) -> None:
        for place, kind in ((domain, going), (other, staying)):
            assert (await broker.ask("PUT", PLACE.format(place) + kind, 1 if kind else None))[0] == 204
        assert (await broker.ask("POST", SCHEMA, GIVEN))[0] == 200
        assert (await broker.ask("DELETE", PLACE.format(domain) + going))[0] == 204
        assert (await broker.ask("GET", SCHEMA))[0] == 200
        assert (await broker.ask("DELETE", PLACE.format(other) + staying))[0] == 204
        assert (await broker.ask("GET", SCHEMA))[0] == 404

    run_on_broker(tmp_path, act)
