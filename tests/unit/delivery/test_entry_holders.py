"""Who has an entry out: noted from the first question on, and not for ever."""

from __future__ import annotations

from magnetar.broker.delivery.consumer_state import ConsumerState
from magnetar.broker.delivery.entry_holders import EntryHolders
from tests.support.writable import consumer


def six() -> list[ConsumerState]:
    return [consumer(f"c{i}") for i in range(6)]


def test_what_goes_out_after_the_first_question_is_noted() -> None:
    consumers, holders = six(), EntryHolders()
    consumers[5].pending = {10: 1}
    assert holders.of(10, consumers) is consumers[5]
    assert holders.of(11, consumers) is None
    consumers[2].pending = {11: 1}
    holders.note(consumers[2], (11,))
    assert holders.of(11, consumers) is consumers[2]
    del consumers[2].pending[11]
    assert holders.of(11, consumers) is None
    holders.check(consumers)


def test_noting_ends_when_as_many_have_gone_out() -> None:
    """So that a single question costs nothing for long, and what came back takes no memory for ever."""
    consumers, holders = six(), EntryHolders()
    consumers[0].pending = dict.fromkeys(range(3000), 1)
    assert holders.of(2999, consumers) is consumers[0]
    went = 0
    while holders.noting:
        ordinals = range(3000 + went, 3100 + went)
        consumers[1].pending.update(dict.fromkeys(ordinals, 1))
        holders.note(consumers[1], ordinals)
        went += 100
        holders.check(consumers)
    assert went == 3100, "one more than were noted first"
    assert holders.of(3100 + 2999, consumers) is consumers[1]
    holders.check(consumers)


def test_few_consumers_are_asked() -> None:
    consumers, holders = six()[:4], EntryHolders()
    consumers[3].pending = {7: 1}
    assert holders.of(7, consumers) is consumers[3]
    assert not holders.noting
