"""The oracle's own parts that need no broker: normalising, comparing, laying out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tools.servers.apache import configuration

from magnetar.protocol.generated import pulsar_pb2 as schema
from tests.conformance import differences, recording, wire
from tests.conformance.answers import Normaliser, shape, text, tried
from tests.conformance.probe import PROFILES
from tests.conformance.probes import REGISTRY


def test_ledgers_are_numbered_as_they_appear_and_minus_one_stays() -> None:
    normal = Normaliser()
    assert [normal.ledger(number) for number in (700, 12, 700, 2**64 - 1, 2**63 - 1)] == [
        "L0",
        "L1",
        "L0",
        -1,
        "latest",
    ]


def test_absent_fields_stay_absent() -> None:
    said = Normaliser().message(
        schema.CommandMessage(consumer_id=3, message_id=schema.MessageIdData(ledgerId=5, entryId=1))
    )
    assert said == {"consumer_id": 3, "message_id": "L0:1"}


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ("standalone-12-7", "<generated>"),
        ("not served by this instance:localhost:8080. Please", "not served by this instance:<address>. Please"),
        ("conflict with Consumer{a={b}, c}, id=3}", "conflict with Consumer{...}"),
        ("nothing to replace", "nothing to replace"),
    ],
)
def test_texts_that_depend_on_the_run(raw: str, said: str) -> None:
    assert text(raw) == said


def test_differences_name_the_place_and_both_answers() -> None:
    theirs = {"a": [1, 2], "b": {"c": "x"}, "same": 1}
    ours = {"a": [1, 3], "b": {}, "same": 1}
    assert [str(each) for each in differences.between(theirs, ours)] == [
        "/a/1\n      theirs 2\n      ours   3",
        "/b/c\n      theirs 'x'\n      ours   '<absent>'",
    ]
    assert list(differences.between(theirs, theirs)) == []
    assert len(list(differences.between([1], [1, 2]))) == 1


def test_differences_on_purpose_are_read_from_markdown(tmp_path: Path) -> None:
    file = tmp_path / "differences.md"
    file.write_text(
        "# x\n\nA line is ``- `probe-id`: reason``.\n\n- `lookup-answer`: because\n"
        "- `x` at `/a/*`: one\n- `x` at `/b`: two\n"
    )
    assert differences.on_purpose(file) == {
        "lookup-answer": [differences.Listed("*", "because")],
        "x": [differences.Listed("/a/*", "one"), differences.Listed("/b", "two")],
    }
    assert differences.on_purpose(tmp_path / "missing.md") == {}


def test_a_listed_place_excuses_only_itself() -> None:
    theirs = {"a": {"x": 1, "y": 2}, "b": 1, "c": 1}
    listed = [differences.Listed("/a/*", "one"), differences.Listed("/b", "two")]
    verdict = differences.judge(theirs, {"a": {"x": 3, "y": 4}, "b": 1, "c": 2}, listed)
    assert [each.path for each in verdict.to_mend] == ["/c"]
    assert (verdict.on_purpose, verdict.gone) == (listed[:1], listed[1:])
    everything = differences.judge(theirs, {}, [differences.Listed("*", "all")])
    assert not everything.to_mend and not everything.gone


def test_layout_is_json_and_keeps_its_value() -> None:
    value = {"long": [f"key-{n}" for n in range(60)], "deep": {"x": [{"y": "z" * 80}, {"y": "z" * 80}]}, "none": []}
    laid = recording.layout(value)
    assert json.loads(laid) == value
    assert max(len(line) for line in laid.splitlines()) <= recording.LINE_LENGTH + 2


def test_records_are_written_and_read_back(tmp_path: Path) -> None:
    answers = {"lookup-answer": {"a": 1}, "ping-pong": "PONG"}
    assert [path.name for path in recording.write(answers, tmp_path)] == ["handshake.json", "lookup.json"]
    assert recording.read(tmp_path) == answers
    recording.write({"ping-pong": "other"}, tmp_path)
    assert recording.read(tmp_path) == {**answers, "ping-pong": "other"}


def test_shape_keeps_names_and_kinds() -> None:
    assert shape({"b": [{"x": 1.5}], "a": "t", "e": []}) == {"a": "str", "b": [{"x": "float"}], "e": []}


def test_every_probe_names_rules_and_a_known_profile() -> None:
    assert len(REGISTRY) > 100
    for probe in REGISTRY.values():
        assert probe.rules and probe.profile in PROFILES and probe.about


def test_a_frame_of_the_probes_has_the_layout_of_the_wire() -> None:
    data = wire.frame(wire.command("SEND", producer_id=1, sequence_id=2), wire.entry(b"payload", sequence_id=2))
    total, size = int.from_bytes(data[:4], "big"), int.from_bytes(data[4:8], "big")
    assert total == len(data) - 4
    assert data[8 + size : 10 + size] == b"\x0e\x01"
    entry = wire.parse_entry(data[8 + size :])
    assert (entry.texts(), entry.checksum_right, entry.metadata.sequence_id) == (["payload"], True, 2)
    broken = bytearray(data[8 + size :])
    broken[-1] ^= 1
    assert not wire.parse_entry(bytes(broken)).checksum_right


def test_batch_is_taken_apart_again() -> None:
    headers = wire.entry(wire.batch(["a", "", "ccc"]), num_messages_in_batch=3)
    assert wire.parse_entry(headers).texts() == ["a", "", "ccc"]


def test_configuration_replaces_and_appends() -> None:
    shipped = "# port\nbrokerServicePort=6650\nother=1"
    assert (
        configuration(shipped, {"brokerServicePort": "1", "new": "2"})
        == "# port\nbrokerServicePort=1\nother=1\nnew=2\n"
    )


def test_tried_tells_values_errors_and_success_apart() -> None:
    assert tried(lambda: 3) == 3
    assert tried(object) == "succeeds"
    assert tried(lambda: int("x")) == "raises ValueError"
