"""A log whose birth the disk refused is forgotten only if nobody has anything of it (docs/decisions/069)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from magnetar.storage.ledgers.feature_state import StateChange
from magnetar.storage.ledgers.managed_ledger import ManagedLedger
from tests.support.loop_turns import settled
from tests.support.store_lives import disk, opened, run


class Nothing:
    """A feature that has nothing to say."""

    def __init__(self, snapshot: bytes | None, changes: Sequence[bytes]) -> None: ...
    def changes(self) -> StateChange | None: ...
    def durable(self) -> None: ...
    def lost(self) -> None: ...

    def snapshot(self) -> bytes:
        return b""


USES: dict[str, Callable[[ManagedLedger], object]] = {
    "a subscription": lambda log: log.open_cursor("s", 0),
    "a feature": lambda log: log.feature_state("f").open(Nothing),
    "an entry": lambda log: log.append(b"entry", 1, None),
    "nothing": lambda log: None,
}


@pytest.mark.parametrize("use", USES)
def test_who_uses_it_by_then_keeps_it(use: str) -> None:
    """What is refused to one may be taken of another a moment later, and that one has it then."""

    async def main() -> None:
        store = opened(disk())
        log = store.open_log("a")
        USES[use](log)
        assert store.forget_unborn(log) == (use == "nothing")
        assert store.find_log("a") is (None if use == "nothing" else log)
        await settled()
        assert not store.forget_unborn(log), "or it was born"
        await store.close()

    run(main())
