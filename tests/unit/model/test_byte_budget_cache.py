"""The cache is bounded in bytes, whatever the keys."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from magnetar.model.byte_budget_cache import ByteBudgetCache


@given(st.lists(st.tuples(st.text("abc", max_size=2), st.integers(1, 40)), max_size=200))
def test_never_more_than_the_budget_and_never_wrong(asked: list[tuple[str, int]]) -> None:
    remembered = ByteBudgetCache[str, tuple[str, int]](100)
    known: dict[str, tuple[tuple[str, int], int]] = {}
    for key, size in asked:
        value = remembered.get(key)
        if value is None:
            remembered.put(key, (key, size), size)
            known[key] = ((key, size), size)
        else:
            assert value == known[key][0]
        kept = {**remembered._young, **remembered._old}
        assert sum(size for _, size in kept.values()) <= 100
        assert len(remembered) == len(kept)


def test_what_would_fill_it_alone_is_not_kept() -> None:
    remembered = ByteBudgetCache[bytes, str](1600)
    remembered.put(b"small", "s", 100)
    remembered.put(b"large", "l", 101)
    assert (remembered.get(b"small"), remembered.get(b"large")) == ("s", None)
