"""What the broker counts of requests that are not messages: lookups, topics that are loaded, schemas, transactions,
resource groups.

Each is counted where it is done, once per request. :mod:`magnetar.broker.upkeep.rates` ends a period now and then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Final

from magnetar.runtime.distributions import Buckets, Quantiles, Summaries

_CHECK_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
TRANSACTION_MS: Final = (
    10, 20, 50, 100, 500, 1000, 5000, 15_000, 30_000, 60_000, 300_000, 1_500_000, 3_000_000,
)  # fmt: skip
_WORDS_MAX: Final = 1000


class Activity:
    """The counters of one broker; durations in milliseconds unless a name says seconds."""

    def __init__(self, now_ms: int = 0) -> None:
        self.since = now_ms / 1000
        """When counting began, in seconds since 1970."""
        self.lookups = Quantiles()
        self.lookup_failures = 0
        self.loads = Quantiles()
        self.load_failures = 0
        self.quota_check_seconds = Buckets(_CHECK_SECONDS)
        self.health: int | None = None
        """1 if the last health check succeeded, 0 if it failed, None before the first."""
        self.schemas = SchemaActivity()
        self.transactions = TransactionActivity()

    @contextmanager
    def lookup(self) -> Iterator[None]:
        """Time a lookup."""
        began = perf_counter()
        yield
        self.lookups.add((perf_counter() - began) * 1000)

    @contextmanager
    def load(self) -> Iterator[None]:
        """Time the loading of a topic, which may fail."""
        began = perf_counter()
        try:
            yield
        except Exception:
            self.load_failures += 1
            raise
        self.loads.add((perf_counter() - began) * 1000)

    def turn(self) -> None:
        """A period ends: quantiles forget what is older than two."""
        self.lookups.turn()
        self.loads.turn()
        self.schemas.turn()


class SchemaActivity:
    """The schema registry's, by namespace."""

    def __init__(self) -> None:
        self.operations = {word: Summaries(_WORDS_MAX) for word in ("get", "put", "del")}
        self.failures: dict[str, dict[str, int]] = {word: {} for word in self.operations}
        self.compatible: dict[str, int] = {}
        self.incompatible: dict[str, int] = {}

    @contextmanager
    def operation(self, word: str, namespace: str) -> Iterator[None]:
        """Time one, which may fail."""
        began = perf_counter()
        try:
            yield
        except Exception:
            count(self.failures[word], namespace)
            raise
        self.operations[word].add(namespace, (perf_counter() - began) * 1000)

    def turn(self) -> None:
        """A period ends."""
        for each in self.operations.values():
            each.turn()


class TransactionActivity:
    """The transaction coordinator's, since the start."""

    def __init__(self) -> None:
        self.created = self.committed = self.aborted = self.timed_out = self.appended = 0
        self.durations = Buckets(TRANSACTION_MS)
        """From the beginning of a transaction that was committed to the end being durable, in milliseconds."""


class ResourceGroupActivity:
    """What resource groups did since the start; of a group that was deleted nothing is kept."""

    def __init__(self, there: Iterable[str] = ()) -> None:
        self.updates: dict[str, int] = {}
        self.joins: dict[str, int] = {}
        self.leaves: dict[str, int] = {}
        """How often a namespace came into a group and left it, as far as this broker had to do with the namespace."""
        self.used: dict[tuple[str, str], tuple[int, int]] = {}
        """Messages and bytes by group and way, ``Publish`` or ``Dispatch``; added up once in a period."""
        self._there = set(there)
        self._group_of: dict[object, str] = {}

    def changed(self, group: str, *, exists: bool) -> None:
        """A group was made, changed or deleted."""
        if not exists:
            self._there.discard(group)
            for counts in (self.updates, self.joins, self.leaves):
                counts.pop(group, None)
            for key in [key for key in self.used if key[0] == group]:
                del self.used[key]
        elif group in self._there:
            count(self.updates, group)
        else:
            self._there.add(group)

    def belongs(self, namespace: object, group: object) -> None:
        """A namespace is in that group now, or in none."""
        before = self._group_of.get(namespace)
        if before == group:
            return
        if before is not None:
            del self._group_of[namespace]
            if before in self._there:
                count(self.leaves, before)
        if isinstance(group, str) and group in self._there:
            self._group_of[namespace] = group
            count(self.joins, group)

    def use(self, group: str, way: str, messages: int, size: int) -> None:
        """So much went through topics of the group."""
        if (messages or size) and group in self._there:
            before = self.used.get((group, way), (0, 0))
            self.used[group, way] = before[0] + messages, before[1] + size


def count(counts: dict[str, int], word: str) -> None:
    """Add one under ``word``; what is one word too many counts under ``other``."""
    if word not in counts and len(counts) >= _WORDS_MAX:
        word = "other"
    counts[word] = counts.get(word, 0) + 1
