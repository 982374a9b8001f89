"""`magnetar admin` over the whole list of the judges, with the recorded answers of Apache Pulsar 4.0.8: the same
requests, output and exit codes as Apache Pulsar's own pulsar-admin, or listed (decision 045)."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.official_tools import command_list, exchange, own_answers, verdict
from tools.official_tools.__main__ import values
from tools.official_tools.exchange import RecordedLine
from tools.official_tools.verdict import Difference
from tools.servers.process import Server


@pytest.fixture(scope="module")
def recorded() -> list[RecordedLine]:
    return exchange.read()


def found(recorded: list[RecordedLine], scratch: Path) -> list[Difference]:
    server = Server("nobody", 6650, 8080, scratch / "log")
    filled = {**values(server, scratch, Path("nowhere")), "conf": str(own_answers.conf_of(scratch))}
    return own_answers.differences(command_list.read(), recorded, filled, verdict.accepted())


def test_every_command_asks_prints_and_ends_as_pulsar_admin(recorded: list[RecordedLine], tmp_path: Path) -> None:
    assert [str(each) for each in found(recorded, tmp_path) if not each.reason] == []


def test_another_request_output_or_exit_code_is_found(recorded: list[RecordedLine], tmp_path: Path) -> None:
    """One line of each is spoilt."""
    at = {line.text: index for index, line in enumerate(recorded)}
    spoilt = list(recorded)

    def change(text: str, **changes: object) -> None:
        line = spoilt[at[text]]
        said, asked = dict(changes), list(line.asked)
        if "target" in said:
            asked[0] = asked[0]._replace(target=str(said.pop("target")))
        spoilt[at[text]] = line._replace(said=line.said._replace(**said), asked=asked)  # type: ignore[arg-type]

    change("admin tenants get acme", out='{"adminRoles": ["boss"]}')
    change("admin tenants get nobody", code=0)
    change("admin brokers version", target="/admin/v2/brokers/versions")
    places = {(each.line.arguments, each.place) for each in found(spoilt, tmp_path) if not each.reason}
    assert {("tenants get nobody", "exit"), ("brokers version", "asked")} <= places
    assert any(line == "tenants get acme" and place.startswith("out") for line, place in places)
