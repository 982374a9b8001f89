"""Commands of topics and subscriptions that are more than one request or whose request depends on several flags."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any, Final

from magnetar.cli.admin.arguments import UsageError
from magnetar.cli.admin.call import Call, position_of
from magnetar.cli.admin.request import namespace_path, topic_name, topic_path
from magnetar.cli.output.waiting_line import WaitingLine, wait_for
from magnetar.model.errors import MagnetarError
from magnetar.runtime.clock import SystemClock
from magnetar.runtime.files.pipe import read_without_waiting, why_unread

_SHADOW_SOURCE: Final = "PULSAR.SHADOW_SOURCE"
_LONG_MAX: Final = (1 << 63) - 1
_LIST_BYTES_MAX: Final = 64 << 20
_WAIT_SECONDS: Final = 86_400.0


def list_topics(call: Call) -> None:
    """List the topics of a namespace, of both domains unless one is named."""
    wanted = call.text("topic-domain").replace("_", "-")
    suffix = "/partitioned" if call.command.name == "list-partitioned-topics" else ""
    query = {"bundle": call.text("bundle") or None, "includeSystemTopic": call.switch("include-system-topic")}
    found: list[str] = []
    for domain in [wanted] if wanted else ["persistent", "non-persistent"]:
        path = f"/admin/v2/{domain}/{namespace_path(call.values['namespace'])}{suffix}"
        found += call.get(path, query) or []
    call.show("lines", found)


def delete_topics(call: Call) -> None:
    """Delete a topic, those of a file, or those that match a pattern."""
    name = str(call.values["topic"])
    if call.switch("regex") and call.switch("from-file"):
        call.usage("--regex has no meaning for a file of topics")
    if call.switch("from-file"):
        topics = _lines_of(name)
    elif call.switch("regex"):
        topics = _matching(call, name)
    else:
        topics = [name]
    query = {"force": call.switch("force"), "deleteSchema": True}
    with WaitingLine(f"deleting {len(topics)} topics") as progress:
        for count, topic in enumerate(topics):
            if len(topics) > 1:
                progress.turn(f"{count} done")
            call.send("DELETE", f"/admin/v2/{topic_path(topic)}", query)


def _lines_of(path: str) -> list[str]:
    try:
        content = read_without_waiting(path, _LIST_BYTES_MAX + 1)
        if len(content) > _LIST_BYTES_MAX:
            raise UsageError(f"{path} has more than {_LIST_BYTES_MAX} bytes: split it")
        return [line.strip() for line in content.decode().splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read as a list of topics: {why_unread(error)}") from None


def _matching(call: Call, pattern: str) -> list[str]:
    try:
        wanted = re.compile(pattern)
        namespace = topic_name(pattern).namespace.text
    except re.error as error:
        raise UsageError(f"{pattern[:80]!r} is no pattern: {error}") from None
    full = wanted if "://" in pattern else re.compile(f"(?:non-)?persistent://{pattern}")
    found: list[str] = []
    for domain in ("persistent", "non-persistent"):
        found += call.get(f"/admin/v2/{domain}/{namespace_path(namespace)}", {"includeSystemTopic": False}) or []
    return [name for name in found if full.fullmatch(name)]


def message_id(ledger: int, entry: int, **more: Any) -> dict[str, Any]:
    """Return a message id as bodies have it."""
    return {"ledgerId": ledger, "entryId": entry, "partitionIndex": -1, "batchIndex": -1, **more}


def _start_of(text: str) -> tuple[int, int]:
    """Return the position of ``earliest``, ``latest`` or ``LEDGER:ENTRY``."""
    return {"latest": (_LONG_MAX, _LONG_MAX), "earliest": (-1, -1)}.get(text) or position_of(text)


def create_subscription(call: Call) -> None:
    """Create a subscription at a position."""
    ledger, entry = _start_of(call.text("messageId") or "latest")
    properties = call.values.get("property")
    body = message_id(ledger, entry, batchSize=0)
    if properties:
        body = message_id(ledger, entry, excluded=False, properties=properties)
    query = {"replicated": call.switch("replicated")}
    call.send("PUT", call.subscription, query, body)


def update_subscription_properties(call: Call) -> None:
    """Replace the properties of a subscription; to remove all of them must be said."""
    properties = call.values.get("property") or {}
    if call.switch("clear") and properties:
        call.usage("--clear removes all properties: give no --property beside it")
    if not call.switch("clear") and not properties:
        call.usage("give --property, or --clear to remove all properties")
    call.send("PUT", f"{call.subscription}/properties", body=properties)


def expire_messages(call: Call) -> None:
    """Skip messages that are older than a time, or before a position."""
    age, position = call.number("expireTime"), call.text("position")
    if age is not None and age >= 0 and position:
        call.usage("give either --expireTime or --position")
    if age is not None and age >= 0:
        call.send("POST", f"{call.subscription}/expireMessages/{age}")
    elif position:
        body = message_id(*position_of(position), excluded=call.switch("exclude-reset-position"))
        call.send("POST", f"{call.subscription}/expireMessages", body=body)
    elif age is not None and age < -1:  # -1 is what it is where it was not given
        call.usage(f"--expireTime is an age of 0 or more, not {age}")
    else:
        call.usage("give either --expireTime or --position")


def reset_cursor(call: Call) -> None:
    """Move a subscription to a message, or to a time before now."""
    back = call.number("time")
    if call.text("messageId"):
        ledger, entry = _start_of(call.text("messageId"))
        body = message_id(ledger, entry, excluded=call.switch("exclude-reset-position"))
        call.send("POST", f"{call.subscription}/resetcursor", body=body)
    elif back is not None and back >= 0:
        call.send("POST", f"{call.subscription}/resetcursor/{SystemClock().now_ms() - back}")
    elif back is not None:
        call.usage("--time is how far to go back: 0 or more")
    else:
        call.usage("give either --messageId or --time")


def create_partitioned_topic(call: Call) -> None:
    """Create a partitioned topic, with properties if there are any."""
    count, properties = call.number("partitions"), call.values.get("metadata")
    path, query = f"{call.topic}/partitions", {"createLocalTopicOnly": False}
    if not properties:
        call.send("PUT", path, query, count)
        return
    import json

    from magnetar.cli.admin.request import CommandRequest, query_of

    body = json.dumps({"partitions": count, "deleted": False, "properties": properties}).encode()
    kind = {"content-type": "application/vnd.partitioned-topic-metadata+json"}
    call.exchange(CommandRequest("PUT", path, query_of(query), body), kind)


def create_shadow_topic(call: Call) -> None:
    """Create a topic that shows what another one stores, with as many partitions."""
    source = topic_name(call.text("source"))
    properties = {**_pairs(call, "properties"), _SHADOW_SOURCE: str(source)}
    count = (call.get(f"/admin/v2/{source.rest_path}/partitions") or {}).get("partitions", 0)
    if not count:
        call.send("PUT", call.topic, body=properties)
        return
    import json

    from magnetar.cli.admin.request import CommandRequest

    body = json.dumps({"partitions": count, "deleted": False, "properties": properties}).encode()
    kind = {"content-type": "application/vnd.partitioned-topic-metadata+json"}
    call.exchange(CommandRequest("PUT", f"{call.topic}/partitions", "createLocalTopicOnly=false", body), kind)


def _pairs(call: Call, key: str) -> dict[str, str]:
    value = call.values.get(key)
    return dict(value) if isinstance(value, dict) else {}


def analyze_backlog(call: Call) -> None:
    """Count the backlog of a subscription by reading it."""
    position = call.text("position")
    body = message_id(*position_of(position), excluded=False) if position else None
    call.show("json", call.send("POST", f"{call.subscription}/analyzeBacklog", body=body))


def backlog_size(call: Call) -> None:
    """Show the bytes from a message to the end."""
    ledger, entry = position_of(call.text("messageId") or "-1:-1")
    call.show("json", call.send("PUT", f"{call.topic}/backlogSize", body=message_id(ledger, entry, batchSize=0)))


def message_id_at(call: Call) -> None:
    """Show the id of the first message at or after a time."""
    try:
        when = datetime.fromisoformat(call.text("datetime"))
    except ValueError:
        call.usage(f"--datetime {call.text('datetime')[:80]!r} is no time: write 2026-06-28T16:53:08Z")
    if when.tzinfo is None:
        call.usage("--datetime must say its zone: write 2026-06-28T16:53:08Z")
    stamp = int(when.timestamp() * 1000)
    found = call.get(f"{call.topic}/messageid/{stamp}")
    if found is None:
        call.say(f"Cannot find any messages based on timestamp {stamp}")
    else:
        call.show("json", found)


def partitioned_lookup(call: Call) -> None:
    """Show which broker serves each partition."""
    topic = topic_name(call.values["topic"])
    count = (call.get(f"{call.topic}/partitions") or {}).get("partitions", 0)
    served: dict[str, str] = {}
    for one in topic.partitions(count) if count else [topic]:
        found = call.get(f"/lookup/v2/topic/{one.rest_path}") or {}
        served[str(one)] = found.get("brokerUrl", "") if isinstance(found, dict) else ""
    if not call.switch("sort-by-broker"):
        return call.show("map", served)
    by_broker: dict[str, list[str]] = {}
    for name, broker in served.items():
        by_broker.setdefault(broker, []).append(name)
    return call.show("map", by_broker)


def lookup(call: Call) -> None:
    """Show which broker serves a topic."""
    found = call.get(f"/lookup/v2/topic/{topic_path(call.values['topic'], call.command.marks)}") or {}
    if call.printer.shape == "json":
        call.show("json", found)
    else:
        call.say(str(found.get("brokerUrl", "")))


def partitioned_metadata(call: Call) -> None:
    """Show how many partitions a topic has."""
    call.show("json", {"partitions": 0, "deleted": False, **(call.get(f"{call.topic}/partitions") or {})})


def last_message_id(call: Call) -> None:
    """Show the id of the newest message."""
    found = call.get(f"{call.topic}/lastMessageId")
    defaults = {"ledgerId": -1, "entryId": -1, "partitionIndex": -1, "batchIndex": -1, "batchSize": 0}
    call.show("json", found if not isinstance(found, dict) else {**defaults, **found})


def terminate(call: Call) -> None:
    """End a topic, and say at which message."""
    call.say(f"Topic successfully terminated at {_shown(call.send('POST', f'{call.topic}/terminate') or {})}")


def partitioned_terminate(call: Call) -> None:
    """End all partitions of a topic, and say at which messages."""
    found = call.send("POST", f"{call.topic}/terminate/partitions") or {}
    for partition, last in found.items():
        name = topic_name(call.values["topic"]).partition(int(partition))
        call.say(f"Topic {name} successfully terminated at {_shown(last or {})}")


def compact(call: Call) -> None:
    """Ask for the compaction of a topic."""
    call.send("PUT", f"{call.topic}/compaction")
    call.say(f"Topic compaction requested for {topic_name(call.values['topic'])}")


def offload(call: Call) -> None:
    """Move all ledgers before the last bytes that may stay to the object store."""
    keep = call.number("size-threshold") or 0
    stats = call.get(f"{call.topic}/internalStats", {"metadata": False}) or {}
    ledgers = list(stats.get("ledgers") or [])
    if not ledgers:
        raise UsageError("the topic has no ledgers that could be offloaded")
    first = _first_to_keep(ledgers, int(stats.get("currentLedgerSize") or 0), keep)
    if first is None:
        call.say("Nothing to offload")
        return
    call.send("PUT", f"{call.topic}/offload", body=message_id(first, 0))
    call.say(f"Offload triggered for {topic_name(call.values['topic'])} for messages before {first}:0:-1")


def _first_to_keep(ledgers: list[dict[str, Any]], current: int, keep: int) -> int | None:
    """The first ledger that stays: from the newest backwards, as long as they fit into what may stay."""
    ledgers = [dict(one) for one in ledgers]
    ledgers[-1]["size"] = current
    left, previous = keep, int(ledgers[-1]["ledgerId"])
    for one in reversed(ledgers):
        left -= int(one.get("size") or 0)
        if left < 0:
            return previous
        previous = int(one["ledgerId"])
    return None


def offload_status(call: Call) -> None:
    """Show how far offloading is; with ``--wait-complete`` until it is done."""
    found = _status(call, f"{call.topic}/offload")
    status = found.get("status")
    if status == "SUCCESS":
        call.say("Offload was a success")
    elif status == "ERROR":
        raise CommandFailedError(f"offloading ended with an error: {found.get('lastError', '')}")
    else:
        call.say("Offload is currently running" if status == "RUNNING" else _not_run(call, "Offload"))


def compaction_status(call: Call) -> None:
    """Show how far compaction is; with ``--wait-complete`` until it is done."""
    found = _status(call, f"{call.topic}/compaction")
    status = found.get("status")
    if status == "SUCCESS":
        call.say("Compaction was a success")
    elif status == "ERROR":
        raise CommandFailedError(f"compaction ended with an error: {found.get('lastError', '')}")
    else:
        call.say("Compaction is currently running" if status == "RUNNING" else _not_run(call, "Compaction"))


def _not_run(call: Call, what: str) -> str:
    return f"{what} has not been run for {topic_name(call.values['topic'])} since broker startup"


def _status(call: Call, path: str) -> dict[str, Any]:
    found: dict[str, Any] = call.get(path) or {}

    def done() -> bool:
        nonlocal found
        found = call.get(path) or {}
        return found.get("status") != "RUNNING"

    if call.switch("wait-complete") and found.get("status") == "RUNNING":
        wait_for(f"waiting for {call.command.name.removesuffix('-status')}", done, _WAIT_SECONDS, pause=1)
    return found


def _shown(found: dict[str, Any]) -> str:
    return f"{found.get('ledgerId', -1)}:{found.get('entryId', -1)}:{found.get('partitionIndex', -1)}"


class CommandFailedError(MagnetarError):
    """The broker did what was asked for, and reports that it came to nothing."""


def shadow_source(call: Call) -> None:
    """Show which topic is shadowed."""
    call.show("word", (call.get(f"{call.topic}/properties") or {}).get(_SHADOW_SOURCE))
