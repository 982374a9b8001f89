"""How many entries a number of permits buys.

Permits are messages, entries are indivisible: the last entry may overshoot by its batch size less one, never more
(rule 5.1.10).
"""

from __future__ import annotations

from collections.abc import Sequence


def buy(counts: Sequence[int], at: int, stop: int, permits: int, chunk: int) -> tuple[int, int]:
    """Take entries from ``at`` on while ``permits`` last and ``chunk`` messages are not exceeded.

    At least one entry is taken, even one larger than both. Returns the index after the last one, and its messages.
    """
    messages = counts[at]
    at += 1
    while at < stop and messages < permits:
        more = messages + counts[at]
        if more > chunk:
            break
        messages = more
        at += 1
    return at, messages
