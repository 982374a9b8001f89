"""Replays of dead letters take each letter once, whatever their filters are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.client.bulk.data_loss import DataLossError
from magnetar.client.errors import ClientError, ClientTimeoutError, ConnectionLostError, RefusedError
from magnetar.client.lookup import Lookup
from magnetar.client.read_position import ReadPosition
from magnetar.model.errors import InvalidValueError, ServerError
from magnetar.pipelines import redrive as module
from magnetar.pipelines.declaration.parser import parse
from magnetar.pipelines.redrive import RedriveMessage, RedrivePlan, chosen, redrive_plans
from magnetar.pipelines.state.checkpoint import PipelineCheckpoint
from magnetar.pipelines.state.dead_letter import parse_dead_letter
from magnetar.spark.options.source_options import source_options
from magnetar.spark.sink.sequence_ids import UnreplayableError
from tests.unit.pipelines.example import TEXT

TOPIC = "persistent://public/default/dead"
OPTIONS = source_options({"service.url": "pulsar://h:1", "topic": "t"})
CAUSES = ("decode", "known")


def dead(number: int) -> RedriveMessage:
    properties = (
        ("mine", "1"),
        ("pipeline.name", "p"),
        ("pipeline.kind", "message"),
        ("pipeline.cause", CAUSES[number % 2]),
        ("pipeline.topic", "persistent://public/default/flights"),
        ("pipeline.position", f"3:{number}:0"),
    )
    return RedriveMessage(TOPIC, ReadPosition(1, number), b"x", None, 0, 100 + number, properties)


def test_a_dead_letter_is_parsed() -> None:
    one = parse_dead_letter(dead(4).properties)
    assert one is not None
    assert (one.pipeline, one.cause, one.position, one.original) == (
        "p",
        "decode",
        ReadPosition(3, 4),
        (("mine", "1"),),
    )
    assert parse_dead_letter((("mine", "1"),)) is None


@given(
    st.lists(
        st.tuples(st.integers(0, 20), st.sampled_from([0, 100, 105, 110]), st.sampled_from(["", *CAUSES])), max_size=6
    )
)
def test_each_is_taken_once(asked: list[tuple[int, int, str]]) -> None:
    ends = sorted(end for end, _, _ in asked)
    plans = [
        RedrivePlan(number, {TOPIC: f"1:{end}:0"}, since, cause)
        for number, (end, (_, since, cause)) in enumerate(zip(ends, asked, strict=True))
    ]
    for number in range(20):
        found = dead(number)
        one = parse_dead_letter(found.properties)
        assert one is not None
        taken = [plan.number for plan in plans if chosen(plans, plan, found, one)]
        # The naive model: the first that wants it and was made when it was there.
        wanted = [
            plan.number
            for plan in plans
            if number < ReadPosition.parse(plan.end[TOPIC]).entry
            and 100 + number >= plan.since_ms
            and plan.cause in ("", CAUSES[number % 2])
        ]
        assert taken == wanted[:1]


@pytest.mark.parametrize(
    ("error", "gone"),
    [
        (DataLossError("trimmed"), True),
        (RefusedError("read", ServerError.TopicNotFound, "no"), True),
        (RefusedError("read", ServerError.AuthorizationError, "no"), False),
        (ConnectionLostError("away"), False),
        (ClientTimeoutError("slow"), False),
    ],
)
def test_a_broker_that_is_away_has_lost_nothing(
    error: ClientError, gone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def messages(*_: Any) -> Iterator[RedriveMessage]:
        raise error
        yield

    monkeypatch.setattr(module, "messages", messages)
    one = parse_dead_letter(dead(4).properties)
    assert one is not None
    lookup: Any = None
    if gone:
        assert module._original(lookup, one, OPTIONS) is None
    else:
        with pytest.raises(type(error)):
            module._original(lookup, one, OPTIONS)


def test_a_replay_that_can_never_be_finished_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hint about shuffles is for queries, not for replays."""

    class Sink:
        def __init__(self, *_: Any) -> None: ...

        def run(self, _: Any) -> Any:
            raise UnreplayableError("set the option staging")

    monkeypatch.setattr(module, "TaskSink", Sink)
    checkpoint, plan = PipelineCheckpoint(str(tmp_path)), RedrivePlan(0, {TOPIC: "1:4:0"})
    checkpoint.begin("small", {})
    pipeline, lookup = parse(TEXT, str(tmp_path / "small.yaml")), Lookup("pulsar://127.0.0.1:1")
    module._keep(checkpoint, plan)
    with pytest.raises(
        InvalidValueError, match=r"replay 0 was broken off.*\"done\" to true in .*replays/0.json"
    ) as caught:
        module._carried_out(pipeline, checkpoint, lookup, "q", [plan], plan)
    assert "staging" not in str(caught.value)
    assert module.redrive_plans(checkpoint) == [plan]


@pytest.mark.parametrize("content", [b"{", b"[]", b"\xff", b'{"number": 0}', b'{"number": 0, "end": {"t": 1}}'])
def test_a_damaged_plan_of_a_replay_is_named(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "replays").mkdir()
    (tmp_path / "replays" / "0.json").write_bytes(content)
    with pytest.raises(InvalidValueError, match=r"replays/0\.json is damaged: "):
        redrive_plans(PipelineCheckpoint(str(tmp_path)))
