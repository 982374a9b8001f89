"""What a start has found: every log and cursor, the numbers that go on from here, and what is damaged."""

from __future__ import annotations

import logging
from typing import Final, Protocol

from magnetar.storage.ledgers.archive import Offload
from magnetar.storage.ledgers.cursor import Cursor
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from magnetar.storage.log import records
from magnetar.storage.log.journal import Journal

log = logging.getLogger(__name__)

LOG, LEDGER, CURSOR = range(3)
"""Where the highest id of each stands."""
_IDS_AHEAD: Final = 1 << 40
"""How far an id may be ahead of the highest one known: each start that follows lost blocks skips 2**24."""


class LogFactory(Protocol):
    """The store, as recovery sees it."""

    journal: Journal
    discarded: dict[str, Offload]

    def copy_discarded(self, offload: Offload) -> None: ...
    def make_log(self, log_id: int, name: str) -> ManagedLedger: ...


class Recovered:
    """The result of a recovery."""

    def __init__(self) -> None:
        self.logs: dict[int, ManagedLedger] = {}
        self.cursors: dict[tuple[int, int], Cursor] = {}
        """By the ids of their log and their own."""
        self.renumbered: list[Cursor] = []
        """Those that shared their id with another one of their log, and have new ones that no record knows."""
        self.checkpoint_number = 0
        self.checkpoint_segment = 0
        self.segment = 0
        """The newest segment that exists."""
        self.length = 0
        """How much of it counts."""
        self.hollow = False
        """The newest segment was read, and no whole block is in it."""
        self.blocks_lost = False
        """Of what was read some is unreadable, if only a header: numbers may have been given there."""
        self.sequence = 0
        """Sequence for the next block."""
        self.secret: int | None = None
        """The directory's; None in a new one."""
        self.scanned: list[int] = []
        """Segments that were read, and so need an index file."""
        self.noted: int | None = None
        """The newest of which is known that a block of it was durable."""
        self.ids = [0, 0, 0]
        """Highest log, ledger and cursor id ever seen."""
        self.damage: list[str] = []
        """Descriptions of what is unreadable; each is in the log, too."""

    def know(self, which: int, number: int) -> None:
        """An id was given. Raises RecordError if it cannot have been."""
        ids = self.ids
        if number > ids[which]:
            if number > ids[which] + _IDS_AHEAD:
                raise records.RecordError(f"an id {number} where {ids[which]} is the highest")
            ids[which] = number

    def name(self, damage: str) -> None:
        """Note damage that has not been said yet."""
        self.damage.append(damage)
        log.error("%s", damage)
