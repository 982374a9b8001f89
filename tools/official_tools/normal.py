"""What a command printed, without what differs in every run.

JSON keeps its members: a number under a name that measures something becomes its type, so that a missing member or a
text instead of a number is still a difference. Other text keeps its words.
"""

from __future__ import annotations

import json
import re

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

MEASURED = re.compile(
    r"rate|throughput|time|age|size|bytes|ledger|entr|counter|position|latency|memory|cpu|bandwidth|offset|stamp|"
    r"duration|millis|version|messageack|permits|readahead|usage|backlog",
    re.IGNORECASE,
)
REPLACED = (
    (re.compile(r"(?:127\.0\.0\.1|localhost):\d+"), "<address>"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"), "<time>"),
    (re.compile(r"\b1[67]\d{11}\b"), "<ms>"),
    (re.compile(r"standalone-\d+-\d+"), "<generated>"),
    (re.compile(r"\b\d+:(-?\d+)((?::-?\d+)*)\b"), r"<ledger>:\1\2"),
    (re.compile(r"ledgerId\D{1,4}\d+"), "ledgerId=<ledger>"),
    (re.compile(r"/(?:tmp|root|home)/[^\s\",]*"), "<path>"),
    (re.compile(r"\b\d+\.\d+\b"), "<number>"),
    (re.compile(r"\breqId\W{1,3}\d+"), "reqId=<id>"),
    (re.compile(r"Request ID: \S+|requestId=\S+|@[0-9a-f]{4,}"), "<id>"),
)
LOGGED = re.compile(r"^\d{4}-\d\d-\d\dT\S+ \[[^\]]*\] (\w+) +(\S+) - (.*)$")
JAVA_LOGGED = re.compile(r"^(?:\w{3} \d+, \d{4} \d+:\d\d:\d\d [AP]M \S+ \S+|INFO: .*|WARNING: .*|SLF4J.*)$")
_REASON = re.compile(r"^Reason: (.*)$", re.MULTILINE)
TOOLS_OWN = ("org.apache.pulsar.client.cli.", "org.apache.pulsar.testclient.")


def text(raw: str) -> str:
    """Words of a line or of several; of a logger's lines only the tools' own, without time, thread and class."""
    kept = []
    for line in raw.splitlines():
        logged = LOGGED.match(line)
        if logged and not logged[2].startswith(TOOLS_OWN):
            continue
        if JAVA_LOGGED.match(line):
            continue
        kept.append((logged[3] if logged else line).rstrip())
    said = "\n".join(line for line in kept if line)
    for pattern, replacement in REPLACED:
        said = pattern.sub(replacement, said)
    return said


def value(raw: Json, name: str = "") -> Json:
    """A JSON value whose measures have become types."""
    if isinstance(raw, dict):
        return {text(key): value(member, key) for key, member in raw.items()}
    if isinstance(raw, list):
        return [value(member, name) for member in raw]
    if isinstance(raw, bool) or raw is None:
        return raw
    if isinstance(raw, int | float):
        # -1 says that there is none
        return f"<{type(raw).__name__}>" if MEASURED.search(name) and raw != -1 else raw
    return text(raw)


def output(raw: str) -> Json:
    """What was printed: a JSON value if it is one, else its text."""
    try:
        parsed = json.loads(raw)
    except ValueError:
        return text(raw)
    return value(parsed) if isinstance(parsed, dict | list) else text(raw)


def unordered(value: Json) -> Json:
    """A list of texts in order, which is a set of Java's mostly, and without members that are null."""
    if isinstance(value, dict):
        return {key: unordered(one) for key, one in value.items() if one is not None}
    if isinstance(value, list):
        if all(isinstance(one, str) for one in value):
            return list[Json](sorted(map(str, value)))
        return [unordered(one) for one in value]
    return value


def reason(raw: str) -> str:
    """The broker's reason in an error, which both command lines print on its own line; else if there is one."""
    said = text(raw)
    found = _REASON.search(said)
    return found[1] if found else "<error>" if said else ""
