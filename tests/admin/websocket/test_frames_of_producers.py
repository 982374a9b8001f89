"""Frames of producers that say too much: each has its answer, and the socket goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from magnetar.admin.values.coercion import DELAY_MS_MAX
from magnetar.admin.websocket import producer_socket
from magnetar.admin.websocket.frames import SentMessage, sent_message
from tests.support.real_broker import RealBroker, run_on_broker
from tests.support.websocket_peers import P, message, opened, said

_LONG = 2**63 - 1


def test_numbers_of_any_size_have_an_answer(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    cases: list[tuple[Any, str]] = [
        ({"deliverAfterMs": DELAY_MS_MAX}, "ok"),
        ({"deliverAfterMs": DELAY_MS_MAX + 1}, "send-error:7"),
        ({"deliverAfterMs": _LONG}, "send-error:7"),
        ({"deliverAfterMs": 9e18}, "send-error:7"),
        ({"deliverAfterMs": 10**30}, "send-error:3"),
        ({"deliverAfterMs": -_LONG - 1}, "ok"),
        ({"deliverAt": _LONG}, "ok"),
        ({"deliverAt": 10**30}, "send-error:3"),
        ({"eventTime": "9999-12-31T23:59:59.999Z"}, "ok"),
        ({"eventTime": "0001-01-01T00:00:00Z"}, "send-error:8"),
        ({"sequenceId": _LONG + 1}, "send-error:3"),
        ({"sequenceId": _LONG}, "send-error:8"),
    ]

    async def scenario(broker: RealBroker) -> None:
        async with await opened(broker, P + "t") as socket:
            answers = []
            for number, (fields, _) in enumerate(cases):
                await socket.send(json.dumps({"payload": "eA==", "context": str(number), **fields}))
                answers.append(await said(socket))
            assert [(case[0], answer["result"]) for case, answer in zip(cases, answers, strict=True)] == cases
            assert answers[1]["context"] == "1" and str(DELAY_MS_MAX) in answers[1]["errorMsg"]

    run_on_broker(tmp_path, scenario)
    assert "Traceback" not in caplog.text


def test_a_bug_is_one_answer_and_one_line_and_loses_no_receipt(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(text: str) -> SentMessage:
        if '"context": "2"' in text:
            raise RuntimeError("a bug")
        return sent_message(text)

    async def scenario(broker: RealBroker) -> None:
        async with await opened(broker, P + "t") as socket:
            for number in range(5):
                await socket.send(message(number))
            answers = [await said(socket) for _ in range(5)]
            assert sorted(one["result"] for one in answers) == ["ok"] * 4 + ["send-error:8"]

    with patch.object(producer_socket, "sent_message", broken):
        run_on_broker(tmp_path, scenario)
    assert caplog.text.count("a frame of") == 1
