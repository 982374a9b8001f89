"""The attacks, by subject; each runs in a process of its own and says in a line what it did.

An attack raises AssertionError if the broker's answer is wrong, and returns when it has done its worst. ``scale`` 1 is
the size at which it once did harm; the short form in the test suite takes less.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.hostile.victim import Target

Attack = Callable[[Target, float], str]


def carried_out(attack: Attack, target: Target, scale: float) -> str:
    """Run one attack in this process. Raises AssertionError with the text of whatever it raised."""
    try:
        return attack(target, scale)
    except Exception as error:  # it goes to another process, which may not know its class or what it holds
        raise AssertionError(f"{type(error).__name__}: {error}"[:4000]) from None
