"""Runs `magnetar admin` over the whole list with what Apache Pulsar answered, and compares it with pulsar-admin.

No broker is asked: each request gets the answer that was recorded for it. So what differs is the command line's own:
another request, other output, another exit code.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from unittest.mock import patch
from urllib.parse import parse_qsl, unquote, urlsplit

from magnetar.cli.admin import command
from magnetar.client.rest import Rest, RestAnswer
from tools.official_tools import normal
from tools.official_tools.command_list import Line
from tools.official_tools.exchange import Exchange, RecordedLine
from tools.official_tools.normal import Json
from tools.official_tools.verdict import Accepted, Difference, places, reason_of

_WARNED = " WARN "
_TIME = re.compile(r"\b1[67]\d{11}\b")


def differences(
    lines: Sequence[Line], recorded: Sequence[RecordedLine], values: Mapping[str, str], known: Sequence[Accepted]
) -> list[Difference]:
    """Every difference of the lines of pulsar-admin, accepted or not."""
    found = []
    filled = dict(values)
    for line, record in zip(lines, recorded, strict=True):
        if line.tool == "admin":
            for place, their, our in _line(line.filled(filled), record, filled):
                found.append(Difference(line, place, their, our, reason_of("ours", line, place, known)))
        filled.update(line.captured(record.said.out))
    return found


def _line(words: list[str], record: RecordedLine, values: Mapping[str, str]) -> Iterator[tuple[str, Json, Json]]:
    given = _Given(record.asked, values)
    out, err = io.StringIO(), io.StringIO()
    environment = {"PULSAR_CLIENT_CONF": values["conf"], "HOME": values["dir"]}
    with (
        patch.object(Rest, "send", lambda rest, *asked: given.send(*asked)),
        patch.dict(os.environ, environment),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            code = command.run(words)
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1
    if code != record.said.code:
        yield "exit", record.said.code, code
    for unlike in given.unlike:
        yield "asked", "<absent>", unlike
    for left in given.left:
        yield "asked", f"{left.method} {left.target}", "<absent>"
    if code == record.said.code == 0:
        their, our = (normal.unordered(normal.output(text)) for text in (_printed(record.said.out), out.getvalue()))
        yield from places(their, our, "out")
    elif code == record.said.code and not err.getvalue().strip():
        yield "err", record.said.err, ""


def _printed(out: str) -> str:
    """What a command printed, without the warnings of Java's client among it."""
    return "\n".join(line for line in out.splitlines() if _WARNED not in line)


class _Given:
    """The answers of one line; each is given once."""

    def __init__(self, asked: Sequence[Exchange], values: Mapping[str, str]) -> None:
        self.left = list(asked)
        self.unlike: list[str] = []
        self._values = values

    def send(
        self, method: str, target: str, data: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> RestAnswer:
        for one in self.left:
            if _same(self._filled(one), method, target, data):
                self.left.remove(one)
                about = {"content-type": one.answer_kind, **{key.lower(): value for key, value in one.headers.items()}}
                return RestAnswer(one.status, about, one.answer.encode("latin-1"))
        self.unlike.append(f"{method} {target} {(data or b'').decode()}".strip())
        return RestAnswer(404, {}, b'{"reason":"not recorded"}')

    def _filled(self, one: Exchange) -> Exchange:
        target, body = one.target, one.body
        for name in ("host", "http_port", "dir"):
            target = target.replace(f"{{{name}}}", self._values[name])
            body = body.replace(f"{{{name}}}", self._values[name])
        return one._replace(target=target, body=body)


def _same(one: Exchange, method: str, target: str, data: bytes | None) -> bool:
    theirs, ours = urlsplit(one.target), urlsplit(target)
    return (
        one.method == method
        and _TIME.sub("<ms>", unquote(theirs.path.replace("+", " "))) == _TIME.sub("<ms>", unquote(ours.path))
        and sorted(parse_qsl(theirs.query, True)) == sorted(parse_qsl(ours.query, True))
        and _json(one.body.encode()) == _json(data or b"")
    )


def _json(body: bytes) -> Json:
    try:
        found = json.loads(body) if body else None
    except ValueError:
        return body.decode(errors="replace")
    return normal.unordered(found)


def conf_of(directory: Path) -> Path:
    """A client.conf for addresses that nobody is asked at."""
    file = directory / "client.conf"
    file.write_text("webServiceUrl=http://127.0.0.1:8080\nbrokerServiceUrl=pulsar://127.0.0.1:6650\n")
    return file
