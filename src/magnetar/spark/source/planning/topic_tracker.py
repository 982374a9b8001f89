"""What the driver knows of the topics of a query: which there are, where they end, where it may go next.

It lives in one process and never travels. A durable subscription per topic-partition (`CheckpointSubscription`) holds
where the query began, keeps what is not processed, and follows what is. With limits, an `EntryScanner` per
topic-partition finds out what the log holds; without limits nothing is scanned.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from magnetar.client.bulk.checkpoint_subscription import CheckpointSubscription
from magnetar.client.bulk.data_loss import DataLossError
from magnetar.client.bulk.entry_scanner import EntryScanner
from magnetar.client.bulk.lag import Lag, lag
from magnetar.client.bulk.positions import last_position
from magnetar.client.errors import ClientError
from magnetar.client.lookup import Lookup
from magnetar.client.read_position import START, ReadPosition
from magnetar.runtime.clock import steady_seconds
from magnetar.spark.options.limits import ReadLimits, TaskSizes
from magnetar.spark.options.offsets import NamedOffset, OffsetSpec
from magnetar.spark.options.source_options import SourceOptions, TopicOffsets, open_lookup
from magnetar.spark.options.topic_selection import check_known, topic_partitions
from magnetar.spark.source.planning.admission import admit, waiting
from magnetar.spark.source.planning.backlog import backlog_estimates, bounded_end, is_small
from magnetar.spark.source.planning.offset_resolution import end_if_beyond, resolve, resolve_start
from magnetar.spark.source.planning.slices import runs_by_entry, runs_by_ledger, slices

log = logging.getLogger(__name__)

_FRESH: Final = 0.02
"""Spark asks for the latest offset up to a hundred times a second; so long an answer is good, seconds."""
_DISCOVERY_INTERVAL: Final = 10.0
_LAG_INTERVAL: Final = 5.0


class TopicTracker:
    """Tracks the topics of one stream."""

    def __init__(self, options: SourceOptions, subscription: str) -> None:
        self._options = options
        self._subscription = subscription
        self._lookup: Lookup = open_lookup(options)
        self._subscriptions: dict[str, CheckpointSubscription] = {}
        self._scanners: dict[str, EntryScanner] = {}
        self._moved: dict[str, ReadPosition] = {}
        self._discovered = float("-inf")
        self._asked = float("-inf")
        self._last: dict[str, ReadPosition] = {}
        self._lags: dict[str, Lag] = {}
        self._lags_asked = float("-inf")

    def initial(self) -> dict[str, ReadPosition]:
        """Return where the query began: the same until the subscriptions are moved, whatever is published."""
        starting = (
            self._options.starting if self._options.starting is not None else TopicOffsets(NamedOffset.LATEST, {})
        )
        names = self._discover()
        check_known(starting.exceptions, names, "startingOffsets")
        return {name: self._hold(name, starting.of(name)) for name in names}

    def _hold(self, name: str, at: OffsetSpec) -> ReadPosition:
        if at is NamedOffset.LATEST:
            return self._subscription_of(name).hold(None)
        # Resolved once: whatever asks next gets the position of the subscription.
        strict = self._options.fail_on_data_loss
        return self._subscription_of(name).hold(resolve_start(self._lookup, name, at, strict=strict))

    def latest(self) -> dict[str, ReadPosition]:
        """Return the position after the last message of each topic-partition, new ones included."""
        now = steady_seconds()
        if now - self._asked > _FRESH:
            if now - self._discovered > _DISCOVERY_INTERVAL:
                for name in self._discover():
                    if name not in self._subscriptions:
                        self._subscription_of(name).hold(START)
            self._last = {name: subscription.last() for name, subscription in self._subscriptions.items()}
            self._asked = steady_seconds()
        return self._last

    def bound_now(self) -> dict[str, ReadPosition]:
        """Return the end of what there is now, but nothing from endingOffsets or endingTime on.

        Makes no subscriptions: who asks does not know yet whether a query begins (`initial`) or goes on (`latest`).
        """
        names, ending = topic_partitions(self._lookup, self._options.topics, create=True), self._options.ending
        found = {name: last_position(self._lookup, name) for name in names}
        if ending is None:
            return found
        check_known(ending.exceptions, found, "endingOffsets")
        return {
            name: last if (at := ending.of(name)) is NamedOffset.LATEST else min(last, resolve(self._lookup, name, at))
            for name, last in found.items()
        }

    def check_there(self, start: Mapping[str, ReadPosition]) -> None:
        """Look for topics of the checkpoint that are gone or were made anew; DataLossError if that must not be."""
        if not self._options.fail_on_data_loss:
            return
        for name, position in start.items():
            last = self._last.get(name)
            if last is not None and (written := end_if_beyond(self._lookup, name, position, last)) is not None:
                raise DataLossError(
                    f"{name} was read up to {position}, and ends at {written}: it was made anew since, or its broker "
                    "has lost what was there; use a new checkpoint, or set failOnDataLoss=false to wait for what comes "
                    "after it"
                )
        gone = sorted(start.keys() - self._subscriptions.keys())
        if gone:
            read = ", ".join(f"{name} (read up to {start[name]})" for name in gone)
            raise DataLossError(
                f"not there any more, or not among the topics of the options: {read}; "
                "set failOnDataLoss=false to go on without"
            )

    def waiting(self, start: Mapping[str, ReadPosition], end: Mapping[str, ReadPosition], enough: int) -> int:
        """Return how many messages are between two offsets; need not go on counting at ``enough``."""
        total = 0
        for name, position in end.items():
            first = start.get(name, START)
            if total < enough:
                found = self._scanner(name).scan(first, position, messages=enough)
                total += waiting(found.entries, first, position)[0]
        return total

    def admit(
        self, start: Mapping[str, ReadPosition], end: Mapping[str, ReadPosition], limits: ReadLimits
    ) -> dict[str, ReadPosition]:
        """Return where the next micro-batch ends."""
        found = {
            name: self._scanner(name).scan(start.get(name, START), position, messages=limits.messages, size=limits.size)
            for name, position in end.items()
            if start.get(name, START) < position
        }
        known = {**end, **{name: one.end for name, one in found.items()}}
        return admit({name: one.entries for name, one in found.items()}, start, known, limits)

    def bound(
        self, start: Mapping[str, ReadPosition], end: Mapping[str, ReadPosition], least: int, allowance: int
    ) -> tuple[dict[str, ReadPosition], dict[str, list[ReadPosition]]]:
        """Return where a micro-batch without limits ends, and where it is cut for at least that many tasks
        (`backlog`)."""
        if is_small(start, end):
            return dict(end), {}
        found = backlog_estimates(self._lookup, start, end)
        if allowance:
            end = bounded_end(self._lookup, found, start, end, allowance)
        if len(found) >= least:
            return dict(end), {}
        return dict(end), {name: [part[0] for part in estimate.parts[1:]] for name, estimate in found.items()}

    def slices(
        self,
        start: Mapping[str, ReadPosition],
        end: Mapping[str, ReadPosition],
        sizes: TaskSizes,
        least: int,
        most: int,
        *,
        known: bool,
    ) -> dict[str, list[ReadPosition]]:
        """Return where a micro-batch is cut into tasks of a size; ``known`` says that `admit` has looked at its
        entries."""
        runs = {}
        for name, position in end.items():
            if (first := start.get(name, START)) >= position:
                continue
            if known:
                found = self._scanner(name).scan(first, position)
                runs[name] = runs_by_entry(found.entries, first, position, sizes)
            else:
                runs[name] = runs_by_ledger(self._lookup, name, first, position, sizes)
        return slices({name: some for name, some in runs.items() if some}, least=least, most=most)

    def lags(self, end: Mapping[str, ReadPosition]) -> dict[str, Lag]:
        """Return how far behind a query is that has read up to ``end``; looked at from time to time only."""
        if steady_seconds() - self._lags_asked > _LAG_INTERVAL:
            last = self.latest()
            behind = {name: end.get(name, START) for name, position in last.items() if end.get(name, START) < position}
            try:
                self._lags = {name: lag(self._lookup, name, position, last[name]) for name, position in behind.items()}
            except ClientError as error:
                # This is for people only; the tasks that read say what is wrong, if it matters.
                log.warning("how far %s is behind is not known: %s", self._subscription, error)
                self._lags = {}
            self._lags_asked = steady_seconds()
        return self._lags

    def move_to(self, positions: Mapping[str, ReadPosition]) -> None:
        """Move the subscriptions: everything before is processed."""
        for name, position in positions.items():
            if self._moved.get(name) != position and name in self._subscriptions:
                self._subscriptions[name].move_to(position)
                self._moved[name] = position

    def close(self) -> None:
        """Close the connections; the subscriptions stay."""
        for subscription in self._subscriptions.values():
            subscription.close()
        for scanner in self._scanners.values():
            scanner.close()
        self._lookup.close()

    def _discover(self) -> list[str]:
        self._discovered = steady_seconds()
        return topic_partitions(self._lookup, self._options.topics, create=True)

    def _subscription_of(self, name: str) -> CheckpointSubscription:
        subscription = self._subscriptions.get(name)
        if subscription is None:
            subscription = self._subscriptions[name] = CheckpointSubscription(self._lookup, name, self._subscription)
        return subscription

    def _scanner(self, name: str) -> EntryScanner:
        scanner = self._scanners.get(name)
        if scanner is None:
            scanner = self._scanners[name] = EntryScanner(self._lookup, name)
        return scanner
