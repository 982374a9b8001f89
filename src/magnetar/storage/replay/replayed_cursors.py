"""What is acknowledged: cursors as a checkpoint and records leave them."""

from __future__ import annotations

import logging
from typing import Any

from magnetar.storage.ledgers.cursor import Cursor
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.log import cursor_records
from magnetar.storage.replay.recovered import CURSOR, LogFactory, Recovered
from magnetar.storage.replay.replayed_logs import ReplayedLogs, require_ordinal

log = logging.getLogger(__name__)


class ReplayedCursors:
    """The cursors of a start, while it replays."""

    def __init__(self, found: Recovered, factory: LogFactory, logs: ReplayedLogs) -> None:
        self._found = found
        self._factory = factory
        self._logs = logs
        self._shared: set[tuple[int, int]] = set()
        """Ids that several cursors of one log have, which very old versions could give: a record without a name cannot
        be assigned to one of them, so it counts for none."""
        self.oldest = 0
        """The highest id that the checkpoint knows. Every later cursor was made in a record that is replayed. So may an
        earlier one have been that is unknown; else it was deleted, and the checkpoint knew."""
        self._nameless: set[tuple[int, int]] = set()
        """Cursors that entries were acknowledged on, and whose making no record says."""

    def whole(
        self, managed: ManagedLedger, name: str, properties: dict[str, Any], state: cursor_records.CursorState
    ) -> None:
        """A cursor's whole state."""
        key = managed.id, state.cursor
        cursor = self._found.cursors.get(key)
        if cursor is not None and cursor.name != name:
            self._shared.add(key)
            cursor = managed.cursors.get(name)
            if cursor is not None and cursor.id != state.cursor:
                cursor = None
        if cursor is None:
            self._found.ids[CURSOR] = max(self._found.ids[CURSOR], state.cursor)
            cursor = Cursor(managed, state.cursor, name, state.mark_delete, self._factory.journal, properties)
            self._found.cursors.setdefault(key, cursor)
        cursor.properties = properties
        # a later one of that name stands in the checkpoint while the records still speak of an earlier one
        managed.cursors[name] = cursor
        cursor.restore(state)

    def created(self, name: str, properties: dict[str, Any], state: cursor_records.CursorState) -> None:
        """A CURSOR record. Raises RecordError."""
        managed = self._found.logs.get(state.log)
        self._found.know(CURSOR, state.cursor)
        if managed is not None:
            _require_ranges(managed, state)
            self._nameless.discard((managed.id, state.cursor))
            self.whole(managed, name, properties, state)

    def acknowledged(self, state: cursor_records.CursorState) -> None:
        """An ACKS record. Raises RecordError."""
        self._found.know(CURSOR, state.cursor)
        key = state.log, state.cursor
        known = self._found.cursors.get(key)
        if known is not None and key not in self._shared:
            _require_ranges(self._found.logs[state.log], state)
            known.replay(state)
        elif known is None and state.log in self._found.logs and (self._logs.damaged or state.cursor > self.oldest):
            self._nameless.add(key)

    def deleted(self, managed: ManagedLedger, cursor_id: int) -> None:
        """A CURSOR_DELETED record."""
        key = managed.id, cursor_id
        self._nameless.discard(key)
        gone = None if key in self._shared else self._found.cursors.pop(key, None)
        if gone is not None and managed.cursors.get(gone.name) is gone:
            del managed.cursors[gone.name]

    def part_ids(self) -> None:
        """Give each of the cursors that have one id an id of its own."""
        for log_id, shared in self._shared:
            if (managed := self._found.logs.get(log_id)) is not None:
                self._part(managed, shared)

    def name_nameless(self) -> None:
        """Say of which subscriptions nothing but acknowledgements is left."""
        for log_id, cursor_id in sorted(self._nameless):
            if (managed := self._found.logs.get(log_id)) is not None:
                self._found.name(
                    f"{managed.name}: nothing that can be read says the name of subscription {cursor_id}, on which "
                    "entries were acknowledged; it is lost"
                )

    def _part(self, managed: ManagedLedger, shared: int) -> None:
        found, sharing = self._found, [cursor for cursor in managed.cursors.values() if cursor.id == shared]
        for cursor in sharing:
            found.ids[CURSOR] += 1
            cursor.renumber(found.ids[CURSOR])
            found.cursors[managed.id, cursor.id] = cursor
        found.renumbered += sharing
        if sharing:
            names = " and ".join(cursor.name for cursor in sharing)
            log.warning(
                "%s: %s had one id; each has its own now, and what the log has of the old one counts for none",
                managed.name, names,
            )  # fmt: skip


def _require_ranges(managed: ManagedLedger, state: cursor_records.CursorState) -> None:
    """Raises RecordError if entries are acknowledged that cannot be there, not even lost."""
    if state.ranges:
        require_ordinal(managed, state.ranges[-1][1])
