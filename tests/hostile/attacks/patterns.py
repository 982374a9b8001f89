"""Patterns that take a backtracking engine for ever."""

from __future__ import annotations

from magnetar.protocol.generated import pulsar_pb2 as pb
from tests.hostile.raw import TOPIC, Raw, command
from tests.hostile.victim import Target

PATTERNS = (
    r"(a+)+$",
    r"^(([a-z])+.)+[A-Z]([a-z])+$",
    r"(a|aa)+$",
    r"(.*a){20}x",
    r"((a{0,30}){0,30}){0,30}",
    r"(?:a?){30}a{30}",
    r"(a{1000}){1000}",
    "(" * 200 + "a" + ")" * 200,
    r"(\w+\s?)*\d$",
    r"(?=(a+))\1+$",
    "[",
    "\\",
    "(?P<n>a)(?P=n)",
    "x" * 100_000,
)


def catastrophic(target: Target, scale: float) -> str:
    """GET_TOPICS and WATCH_TOPIC_LIST with each of them, on names that match almost."""
    with Raw(target.broker_port, timeout=60.0) as raw:
        for length in (25, 31, 60, 200):
            raw.producer(f"{TOPIC}{'a' * length}!")
        for number, pattern in enumerate(PATTERNS):
            for whole in (pattern, f"persistent://public/default/{pattern}", f"public/default/{pattern}"):
                heard = raw.ask("GET_TOPICS_OF_NAMESPACE", namespace="public/default", topics_pattern=whole)
                assert heard.type in (pb.BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE, pb.BaseCommand.ERROR)
                raw.ask("WATCH_TOPIC_LIST", namespace="public/default", watcher_id=number, topics_pattern=whole)
                raw.say(command("WATCH_TOPIC_LIST_CLOSE", watcher_id=number, request_id=raw.new_id()))
                raw.until(pb.BaseCommand.SUCCESS)
    return f"{len(PATTERNS)} patterns in three spellings"
