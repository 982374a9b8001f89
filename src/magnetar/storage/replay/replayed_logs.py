"""Which logs there are: those that came to be, those that were deleted, and those that nothing names any more."""

from __future__ import annotations

from typing import Any, Final

from magnetar.storage.ledgers.ledger import Ledger
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.log import records
from magnetar.storage.replay.recovered import LOG, LogFactory, Recovered

NAMELESS: Final = "persistent://lost/found/log-{}"
"""Entries of a log that nothing names any more are kept as this topic: it can be read and deleted like any other."""

_ENTRIES_AHEAD: Final = 1 << 32
"""How many entries may be lost in a row: more than a hundred segments hold."""
_FIRST_BELOW: Final = 1 << 61
"""With which ordinal and which message a log begins whose birth is lost."""


class ReplayedLogs:
    """The logs of a start, while it replays."""

    def __init__(self, found: Recovered, factory: LogFactory) -> None:
        self._found = found
        self._factory = factory
        self.damaged = False
        """Whether a damaged block came before: then any log can be unknown that was not deleted."""
        self.oldest = 0
        """The highest id that the checkpoint knows. Every log after it was born in a record that is replayed; what is
        unknown of those before it was deleted, and the checkpoint knew."""
        self._nameless: set[int] = set()
        """Logs whose birth no record says."""
        self._gone: set[int] = set()
        """Logs that were deleted."""

    def make(self, log_id: int, name: str) -> ManagedLedger:
        """The log of that id, made if missing."""
        managed = self._found.logs.get(log_id)
        if managed is None:
            managed = self._found.logs[log_id] = self._factory.make_log(log_id, name)
            self._found.ids[LOG] = max(self._found.ids[LOG], log_id)
        elif log_id in self._nameless and name != managed.name:
            self._nameless.discard(log_id)
            managed.name = name
        return managed

    def born(self, fields: dict[str, Any]) -> None:
        """A LOG record."""
        if fields["log"] not in self._gone:
            self.make(fields["log"], fields["name"]).properties = fields["properties"]

    def nameless(self, head: records.ExtentHead) -> ManagedLedger | None:
        """A log of which an extent is there and nothing else; None if it was deleted. Raises RecordError."""
        if head.log in self._gone or (not self.damaged and head.log <= self.oldest):
            return None
        if head.ordinal >= _FIRST_BELOW or head.message_index >= _FIRST_BELOW:
            raise records.RecordError(f"a log that begins at {head.ordinal} with message {head.message_index}")
        self._nameless.add(head.log)
        managed = self.make(head.log, NAMELESS.format(head.log))
        managed.recovered(head.ordinal, head.message_index)
        return managed

    def deleted(self, log_id: int) -> None:
        """A LOG_DELETED record."""
        self._gone.add(log_id)
        if (managed := self._found.logs.get(log_id)) is not None:
            self._delete(managed)

    def _delete(self, managed: ManagedLedger) -> None:
        del self._found.logs[managed.id]
        managed.forget()
        for span in managed.spans:
            managed.home.span_dropped(span)
        for cursor in managed.cursors.values():
            self._found.cursors.pop((managed.id, cursor.id), None)

    def ledger(self, managed: ManagedLedger, fields: dict[str, Any]) -> None:
        """A LEDGER record. Raises RecordError."""
        table = managed.table
        if any(known.id >= fields["ledger"] for known in table.ledgers[-1:]):
            return
        require_ordinal(managed, fields["ordinal"])
        kept = (one for one in reversed(table.ledgers) if one.entries or one.ordinal < fields["ordinal"])
        if (last := next(kept, None)) is not None and last.end > fields["ordinal"]:
            raise records.RecordError(f"ledger {fields['ledger']} begins within ledger {last.id}")
        # a ledger that was opened after entries which then failed is void: the next one begins where it did or before
        table.drop_from(fields["ordinal"])
        if table.ledgers and not table.ledgers[-1].closed_ms:
            table.ledgers[-1].closed_ms = fields["ms"]
        table.add(Ledger(fields["ledger"], fields["ordinal"], fields["index"], fields["ms"]))

    def part_names(self) -> None:
        """Of logs of one name all but the newest were deleted, and the record of that is not there.

        If nothing is damaged, only a checkpoint came before the kill: the deletion is carried out. Else they are kept.
        """
        newest: dict[str, ManagedLedger] = {}
        for _, managed in sorted(self._found.logs.items()):
            before = newest.get(managed.name)
            if before is not None and not self._found.damage:
                self._delete(before)
            elif before is not None:
                before.name = NAMELESS.format(before.id)
                self._found.name(f"two logs are called {managed.name}; the older one is kept as {before.name}")
            newest[managed.name] = managed

    def name_nameless(self, managed: ManagedLedger) -> None:
        """Say what happened to a log that nothing names any more."""
        if managed.id in self._nameless:
            self._found.name(
                f"nothing that can be read says the name of log {managed.id}; its entries are kept as {managed.name}"
            )


def require_ordinal(managed: ManagedLedger, ordinal: int) -> None:
    """Raises RecordError if the log cannot have got so far, whatever is lost."""
    if ordinal > managed.end + _ENTRIES_AHEAD:
        raise records.RecordError(f"ordinal {ordinal} of a log that ends at {managed.end}")
