"""``magnetar jobs report``: what the topics of a namespace hold and why, what would be freed, and what it costs.

Everything comes from the broker's REST interface and, for compressibility and age, from a few messages read by
protocol: no topic is read whole, so this needs no Spark tasks of its own. The columns for each topic or partition:

* **size**: all retained ledgers; **backlog**: from the slowest subscription's mark-delete position on, which no policy
  but TTL may remove; **kept**: the rest, acknowledged by every subscription, held only by the retention policy (or
  because its ledger is not full yet);
* **until**: when the retention time lets the last of what is kept now go, which is not before its ledger closes;
* **freed**: what another retention time or TTL would let go: ledgers whose messages are all older. A ledger's age is
  its first message's publish time, read from the topic (one message per ledger).
* **compressibility**: the sampled values of one topic together, compressed by zstd and lz4, as parts of their size.

Sizes are those of entries as stored, batches compressed as their producers did. Ledgers go as a whole, so sums are of
whole ledgers; a ledger in which a subscription stands counts by its share of entries.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import pyarrow as pa  # type: ignore[import-untyped]  # publishes no types

from magnetar.client.read_position import ReadPosition
from magnetar.client.rest import Rest, RestRefusedError, path_of
from magnetar.jobs.reader.unit_reader import Access, Missing, Unit, entries, read
from magnetar.jobs.replay import backlog
from magnetar.model.errors import InvalidValueError
from magnetar.protocol.entries import publish_time

SAMPLE_MESSAGES: Final = 1_000
_MINUTE: Final = 60_000
_LEDGERS_AGED_MAX: Final = 200
"""Ledgers whose first message is read for their age, oldest first."""


class LedgerFacts(NamedTuple):
    """One ledger as the broker lists it."""

    id: int
    entries: int
    size: int
    first_ms: int | None
    """Publish time of its first message; None if it was not read."""


class AppliedPolicies(NamedTuple):
    """Policies that hold for a topic; None is "not set"."""

    retention_minutes: int | None
    """-1: for ever."""
    retention_megabytes: int | None
    ttl_seconds: int | None


class TopicFacts(NamedTuple):
    """What the broker says of one topic or partition."""

    topic: str
    ledgers: Sequence[LedgerFacts]
    """Oldest first; the last one is open."""
    cursors: Mapping[str, Mapping[str, Any]]
    policies: AppliedPolicies
    zstd: float | None
    """Size of the sample compressed, as a part of its size; None without a sample."""
    lz4: float | None


class WhatIf(NamedTuple):
    """Policies to try; None leaves what is set."""

    retention_minutes: int | None = None
    ttl_seconds: int | None = None


class TopicReport(NamedTuple):
    """One row of the result: a topic or partition."""

    topic: str
    size: int
    """Bytes."""
    entries: int
    subscriptions: int
    backlog: int
    """Bytes that the slowest subscription has not acknowledged yet."""
    slowest: str
    kept: int
    """Bytes that retention keeps."""
    until: str
    """When the youngest of them is gone at the latest: a time (ISO 8601), or words; empty if nothing is kept."""
    oldest_ms: int | None
    freed: int
    """Bytes that the policies to try would let go."""
    zstd: float | None
    lz4: float | None
    cost: float
    """Cost per month."""


def sizes_before(ledgers: Sequence[LedgerFacts], place: ReadPosition) -> int:
    """Return the bytes before a place; within a ledger in proportion to its entries."""
    total = 0
    for one in ledgers:
        if one.id < place.ledger:
            total += one.size
        elif one.id == place.ledger and one.entries:
            total += one.size * min(max(place.entry, 0), one.entries) // one.entries
    return total


def slowest_of(cursors: Mapping[str, Mapping[str, Any]]) -> tuple[str, ReadPosition] | None:
    """Return the subscription with the largest backlog, and the first entry that it has not acknowledged."""
    far = ReadPosition(1 << 62, 0)
    found = [(ranges[0][0], name) for name, one in cursors.items() if (ranges := backlog(one, far))]
    return None if not found else (min(found)[1], min(found)[0])


def topic_report(facts: TopicFacts, what_if: WhatIf, now_ms: int, price: float) -> TopicReport:
    """Compute the row of one topic; ``price`` is that of a GB (10^9 bytes) for a month."""
    ledgers = facts.ledgers
    size = sum(one.size for one in ledgers)
    slowest = slowest_of(facts.cursors)
    acknowledged = size if slowest is None else sizes_before(ledgers, slowest[1])
    return TopicReport(
        facts.topic,
        size,
        sum(one.entries for one in ledgers),
        len(facts.cursors),
        size - acknowledged,
        "" if slowest is None else slowest[0],
        acknowledged,
        _until(facts, acknowledged, now_ms),
        next((one.first_ms for one in ledgers if one.entries), None),
        _freed(facts, slowest, what_if, now_ms),
        facts.zstd,
        facts.lz4,
        size / 1e9 * price,
    )


def _until(facts: TopicFacts, kept: int, now_ms: int) -> str:
    minutes, megabytes = facts.policies.retention_minutes, facts.policies.retention_megabytes
    if not kept:
        return ""
    if not minutes or not megabytes:
        return "at the next trim"
    if minutes < 0:
        return "for ever" if megabytes < 0 else f"there are more than {megabytes} MB"
    # everything kept was written by now, so the youngest of it cannot outlive that
    return _instant(now_ms + minutes * _MINUTE)


def _instant(ms: int) -> str:
    return datetime.datetime.fromtimestamp(ms / 1000, datetime.UTC).isoformat(timespec="seconds")


def _freed(facts: TopicFacts, slowest: tuple[str, ReadPosition] | None, what_if: WhatIf, now_ms: int) -> int:
    """Sum the sealed ledgers that are older than the new retention and, by the new TTL, acknowledged."""
    minutes = what_if.retention_minutes
    if minutes is None:
        minutes = facts.policies.retention_minutes or 0
    ttl = what_if.ttl_seconds if what_if.ttl_seconds is not None else facts.policies.ttl_seconds
    if what_if == WhatIf() or minutes < 0:
        return 0
    total = 0
    for one, following in zip(facts.ledgers, facts.ledgers[1:], strict=False):
        closed = following.first_ms  # everything in it is older than what follows
        if closed is None:
            break
        age = now_ms - closed
        done = slowest is None or one.id < slowest[1].ledger or (bool(ttl) and age > (ttl or 0) * 1000)
        if not done or age <= minutes * _MINUTE:
            break  # ledgers go from the front
        total += one.size
    return total


def compressed(values: Sequence[bytes], codec: str) -> float | None:
    """Return the compressed size of all values together as a part of their size; None if they are empty."""
    data = b"".join(values)
    if not data:
        return None
    return len(pa.Codec(codec).compress(data, asbytes=True)) / len(data)


def report_rows(namespace: str, rows: Sequence[TopicReport]) -> list[tuple[Any, ...]]:
    """Return rows for a table: readable sizes, and a last row with the sums."""
    out: list[tuple[Any, ...]] = [
        (
            one.topic, _bytes(one.size), one.entries, one.subscriptions, _bytes(one.backlog), one.slowest,
            _bytes(one.kept), one.until, None if one.oldest_ms is None else _instant(one.oldest_ms), _bytes(one.freed),
            _part(one.zstd), _part(one.lz4), f"{one.cost:.2f}",
        )
        for one in rows
    ]  # fmt: skip
    size, backlog_size, kept, freed = (
        (
            _bytes(sum(column))
            for column in zip(*((one.size, one.backlog, one.kept, one.freed) for one in rows), strict=True)
        )
        if rows
        else ("0 B",) * 4
    )
    cost = f"{sum(one.cost for one in rows):.2f}"
    entries_ = sum(one.entries for one in rows)
    out.append(
        (f"all of {namespace}", size, entries_, None, backlog_size, None, kept, None, None, freed, None, None, cost)
    )
    return out


def _bytes(size: int) -> str:
    amount = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.3g} {unit}"
        amount /= 1000
    return f"{amount:.3g} TB"


def _part(part: float | None) -> str | None:
    return None if part is None else f"{part:.0%}"


# asking the broker -----------------------------------------------------------------------------------------------


def topics_of(rest: Rest, namespace: str) -> list[str]:
    """List the persistent topics of a namespace, each partition as one. Raises InvalidValueError, RestRefusedError."""
    if namespace.count("/") != 1:
        raise InvalidValueError(f"{namespace!r} is no namespace; write tenant/namespace")
    try:
        found = rest.ask("GET", f"/admin/v2/persistent/{quote(namespace)}")
    except RestRefusedError as refused:
        if refused.http_status == 404:
            raise InvalidValueError(f"there is no namespace {namespace} at {rest.url}: {refused}") from None
        raise
    return sorted(str(one) for one in found if "/__" not in str(one))


def facts_of(access: Access, rest: Rest, topic: str, *, aged: bool) -> TopicFacts:
    """Collect the facts of one topic; with ``aged``, the first message of each ledger is read."""
    internal = rest.ask("GET", f"{path_of(topic)}/internalStats")
    listed = internal["ledgers"]
    ledgers = [LedgerFacts(one["ledgerId"], one["entries"], one["size"], None) for one in listed]
    if ledgers:
        # the open ledger's own line shows neither
        ledgers[-1] = ledgers[-1]._replace(entries=internal["currentLedgerEntries"], size=internal["currentLedgerSize"])
    held = [number for number, one in enumerate(ledgers) if one.entries]
    for number in held[: _LEDGERS_AGED_MAX if aged else 1]:
        one = ledgers[number]
        ledgers[number] = one._replace(first_ms=_first_ms(access, topic, one.id))
    values = list(_sample(access, topic, ledgers[held[-1]])) if held else []
    cursors = {name: one for name, one in internal["cursors"].items() if not name.startswith("__")}
    return TopicFacts(
        topic, ledgers, cursors, _policies(rest, topic), compressed(values, "zstd"), compressed(values, "lz4")
    )


def _first_ms(access: Access, topic: str, ledger: int) -> int | None:
    for block in entries(access, Unit(topic, ReadPosition(ledger, 0), ReadPosition(ledger, 1), 0)):
        if not isinstance(block, Missing) and len(block):
            at = int(block.offsets[0])
            return publish_time(block.data[at : at + int(block.lengths[0])].tobytes())
    return None


def _sample(access: Access, topic: str, ledger: LedgerFacts) -> Iterator[bytes]:
    """Yield values of the youngest messages of a ledger, at most `SAMPLE_MESSAGES`."""
    count = min(ledger.entries, SAMPLE_MESSAGES)
    unit = Unit(topic, ReadPosition(ledger.id, ledger.entries - count), ReadPosition(ledger.id, ledger.entries), 0)
    left = SAMPLE_MESSAGES

    def ignore(topic: str, one: Missing) -> None: ...

    for batch in read(access, unit, on_missing=ignore):
        for value in batch.column("value").slice(0, left).to_pylist():
            if value is not None:
                yield value
        left -= batch.num_rows
        if left <= 0:
            return


def _policies(rest: Rest, topic: str) -> AppliedPolicies:
    path = path_of(topic)
    retention = _asked(rest, f"{path}/retention?applied=true") or {}
    ttl = _asked(rest, f"{path}/messageTTL?applied=true")
    return AppliedPolicies(retention.get("retentionTimeInMinutes"), retention.get("retentionSizeInMB"), ttl or None)


def _asked(rest: Rest, path: str) -> Any:
    """Ask for a policy; None where the broker has no such policy (topic policies are switched off)."""
    try:
        return rest.ask("GET", path)
    except RestRefusedError as refused:
        if refused.http_status in (404, 405, 501):
            return None
        raise
