"""``magnetar admin`` in this process, before a recorder that answers in place of a broker."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from magnetar.cli.admin import command
from magnetar.client.rest import RestAnswer, RestRefusedError

ANSWERS: tuple[tuple[str, Any], ...] = (
    (r"/admin/v2/clusters", ["use", "usw"]),
    (r"/admin/v2/tenants/[^/]+", {"adminRoles": ["a"], "allowedClusters": ["use"]}),
    (r".*/partitions", {"partitions": 0}),
    (r"/admin/v2/(non-)?persistent/[^/]+/[^/]+(/partitioned)?", []),
)
"""What the recorder answered to pulsar-admin's questions when the vectors were made; null to others."""


class Ran(NamedTuple):
    """What one command did."""

    code: int
    requests: list[list[Any]]
    out: str
    err: str


class Recorder:
    """Stands where a connection and its REST interface would."""

    web_url = "http://recorder:8080"

    def __init__(self, answers: Sequence[Sequence[Any]] = ()) -> None:
        self.requests: list[list[Any]] = []
        self._answers = list(answers)

    def rest(self, _seconds: float) -> Recorder:
        return self

    def exchange(
        self, method: str, target: str, data: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> RestAnswer:
        path, _, query = target.partition("?")
        path = "/".join(quote(unquote(part), safe="") for part in path.split("/"))
        self.requests.append([method, path, query, *([] if data is None else [json.loads(data)])])
        if self._answers:
            status, content, *more = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
            if status >= 300:
                raise RestRefusedError(status, json.loads(content)["reason"])
            return RestAnswer(
                status, {name.lower(): value for name, value in (more[0] if more else {}).items()}, content.encode()
            )
        found = next((one for pattern, one in ANSWERS if re.fullmatch(pattern, path)), None)
        return RestAnswer(200, {}, json.dumps(found).encode() if method == "GET" else b"")


@contextmanager
def _input(text: str) -> Iterator[None]:
    before, sys.stdin = sys.stdin, io.StringIO(text)
    try:
        yield
    finally:
        sys.stdin = before


def run_admin(words: Sequence[str], answers: Sequence[Sequence[Any]] = (), stdin: str = "Y\n") -> Ran:
    """Run one command before a recorder."""
    recorder = Recorder(answers)
    out, err = io.StringIO(), io.StringIO()
    before = command._connection
    command._connection = lambda _values: recorder  # type: ignore[assignment, return-value]
    try:
        with redirect_stdout(out), redirect_stderr(err), _input(stdin):
            code = command.run(words)
    finally:
        command._connection = before
    return Ran(code, recorder.requests, out.getvalue(), err.getvalue())
