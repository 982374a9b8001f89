"""What comes again although the application has it: on an ordered subscription one entry can only be handed back with
everything that is not acknowledged.

The broker then sends all of it again, from the first on. What the application has taken by then is left out, until
something comes that it has not.
"""

from __future__ import annotations

from magnetar.client.machines.message_id import MessageId

Place = tuple[int, int]


class ResentEntries:
    """What one consumer leaves out."""

    __slots__ = ("_part", "_until")

    def __init__(self) -> None:
        self._until: Place | None = None
        self._part: MessageId | None = None
        """The last message that was taken of the entry ``_until``, if that is one of several and was left off."""

    def expect(self, until: MessageId | None, *, whole: bool) -> None:
        """Have everything come again that is not acknowledged, up to ``until`` in vain: that was taken last.

        ``whole``: the rest of its entry is here still.
        """
        self._until = None if until is None else (until.ledger_id(), until.entry_id())
        self._part = until if until is not None and not whole and until.batch_index() >= 0 else None

    def forget(self) -> None:
        """Leave nothing out: everything is wanted again."""
        self._until = self._part = None

    def leaves_out(self, place: Place) -> bool:
        """Whether an entry that has come is to be left out as a whole."""
        until = self._until
        if until is None:
            return False
        if place > until:
            self.forget()
            return False
        return place < until or self._part is None

    @property
    def part(self) -> MessageId | None:
        """Up to where an entry is to be left out of which a part was taken."""
        return self._part
