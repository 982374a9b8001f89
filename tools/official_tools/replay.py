"""Replays the recorded requests of the official tools against magnetar, without Java, and compares the answers.

Lines of pulsar-client and pulsar-perf, which speak the binary protocol, are run with our own command line: they leave
what the lines after them look at.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Mapping, Sequence

from tools.official_tools import normal
from tools.official_tools.command_list import Line
from tools.official_tools.exchange import Exchange, RecordedLine
from tools.official_tools.normal import Json
from tools.official_tools.our_tool import OurTool
from tools.official_tools.verdict import Accepted, Difference, places, reason_of
from tools.servers.process import HOST, Server

_SECONDS_MAX = 30.0
_PATIENCE_SECONDS = 3.0
"""How long an answer may become what it is to be, for lines that wait for something."""


class Replay:
    """One run of the recording against a broker that is fresh."""

    def __init__(self, server: Server, values: Mapping[str, str], tool: OurTool, known: Sequence[Accepted]) -> None:
        self._server = server
        self._values = dict(values)
        self._tool = tool
        self._known = known
        self._captured: dict[str, str] = {}
        """What the recording has for captured values."""
        self._connection = http.client.HTTPConnection(HOST, server.http_port, timeout=_SECONDS_MAX)

    def run(self, lines: Sequence[Line], recorded: Sequence[RecordedLine]) -> list[Difference]:
        """Every difference, accepted or not. Raises ValueError if the recording is of another list."""
        found: list[Difference] = []
        for line, record in zip(lines, recorded, strict=True):
            if record.text != f"{line.tool} {line.arguments}":
                raise ValueError(f"line {line.number} was recorded as {record.text!r}: make judges ARGS=--record")
            differing = self._line(line, record)
            found += [
                Difference(line, place, their, our, _reason(line, place, self._known))
                for place, their, our in differing
            ]
        self._connection.close()
        return found

    def _line(self, line: Line, record: RecordedLine) -> list[tuple[str, Json, Json]]:
        if line.tool != "admin":
            return self._called(line, record)
        until = time.monotonic() + (_PATIENCE_SECONDS if line.arguments.endswith(" -w") else 0)
        while True:
            found: list[tuple[str, Json, Json]] = []
            last: list[tuple[str, Json, Json]] = []
            for one in record.asked:
                given = self._filled(line, one)
                status, headers, answer = self._ask(given)
                self._values.update(line.captured(answer))
                last = compared(one, status, headers, answer)
                found += last
            if not last or time.monotonic() >= until:  # what was asked before shows how far it was then
                break
            time.sleep(0.02)
        self._captured.update(line.captured(record.said.out))
        return found

    def _called(self, line: Line, record: RecordedLine) -> list[tuple[str, Json, Json]]:
        self._connection.close()  # the broker would close it meanwhile
        said = self._tool.run(line.tool, line.filled(self._values))
        found: list[tuple[str, Json, Json]] = []
        if said.code != record.said.code:
            found.append(("exit", record.said.code, said.code))
        return [*found, *places(normal.output(record.said.out), normal.output(said.out), "out")]

    def _filled(self, line: Line, one: Exchange) -> Exchange:
        target, body = one.target, one.body
        if "{ledger}" in line.arguments:
            before, now = self._captured["ledger"], self._values["ledger"]
            target = target.replace(f"/ledger/{before}/", f"/ledger/{now}/")
            body = body.replace(f'"ledgerId":{before},', f'"ledgerId":{now},')
        for name in ("host", "http_port", "dir"):
            target = target.replace(f"{{{name}}}", self._values[name])
            body = body.replace(f"{{{name}}}", self._values[name])
        return one._replace(target=target, body=body)

    def _ask(self, one: Exchange) -> tuple[int, dict[str, str], str]:
        headers = {"content-type": one.kind} if one.kind else {}
        self._connection.request(one.method, one.target, one.body.encode() or None, headers)
        answer = self._connection.getresponse()
        found = {name: value for name, value in answer.getheaders() if name.lower().startswith("x-pulsar")}
        return answer.status, found, answer.read().decode("latin-1")


def compared(one: Exchange, status: int, headers: Mapping[str, str], answer: str) -> list[tuple[str, Json, Json]]:
    """Where an answer differs from the recorded one; of a refusal everything stands at ``err``."""
    found: list[tuple[str, Json, Json]] = []
    if (status < 300) != (one.status < 300):
        found.append(("exit", one.status, status))
    elif status != one.status:
        found.append(("err", one.status, status))
    refused = status >= 300 or one.status >= 300
    their, our = _lowered(one.headers), _lowered(headers)
    found += places(normal.value(their), normal.value(our), "headers")
    found += places(normal.output(one.answer), normal.output(answer), "err" if refused else "out")
    return found


def _lowered(headers: Mapping[str, str]) -> Json:
    return {name.lower(): json.dumps(value) for name, value in headers.items()}


def _reason(line: Line, place: str, known: Sequence[Accepted]) -> str:
    """What the tools make of an answer may differ as the answer does, and some only the answer shows."""
    return reason_of("magnetar", line, place, known) or reason_of("replay", line, place, known)
