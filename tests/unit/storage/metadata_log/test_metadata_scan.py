"""What two damaged copies of the metadata log still say together, line by line."""

from __future__ import annotations

from collections.abc import Set

import pytest
from crc32c import crc32c

from magnetar.storage.metadata_log.metadata_scan import (
    COPIES,
    Head,
    JoinedCopies,
    MetadataChange,
    change_line,
    head_line,
    read_copy,
    together,
)

A, B = COPIES
INSTANCE = 0xBADCAFE
BASE = (2, 4, 5)
"""Numbers of the changes that a copy begins with; 1 and 3 were replaced by later ones."""
THROUGH = 5
SINCE = (6, 7, 8)


def change(number: int) -> MetadataChange:
    return MetadataChange(number, 0, f"/path/{number}", b"%d" % number)


def copy(
    lost: Set[int] = frozenset(),
    *,
    head: bool = True,
    doubt: str | None = None,
    base: tuple[int, ...] = BASE,
    through: int = THROUGH,
    since: tuple[int, ...] = SINCE,
) -> bytes:
    """One file in which the lines of these numbers, or its head, are unreadable."""
    first = head_line(Head(INSTANCE, len(base), through, doubt))
    lines = [first if head else b"?" * (len(first) - 1) + b"\n"]
    for number in (*base, *since):
        line = change_line(change(number), INSTANCE)
        lines.append(b"?" * (len(line) - 1) + b"\n" if number in lost else line)
    return b"".join(lines)


@pytest.mark.parametrize("data", [b"", b"caf\xc3\xa9", b"\xff\xfe", b"a\nb", b"a\r\x85b", b"\x00", b"\x1b[2J"])
def test_whatever_a_fact_holds_the_file_is_lines_of_text(data: bytes) -> None:
    """Each line is one of text, whatever its value is (docs/disk.md)."""
    written = MetadataChange(1, 0, "/path", data)
    line = change_line(written, INSTANCE)
    assert line.endswith(b"\n") and line[:-1].decode().isprintable()
    found = read_copy(A, head_line(Head(INSTANCE, 0, 0, None)) + line, INSTANCE)
    assert found.changes == {1: written}


@pytest.mark.parametrize(
    "body",
    [b"1 put64 0 /path aG\xc3\xa9k", b"1 put64 0 /path a!G!k!=", b"1 put32 0 /path x", b"one put 0 /path x", b"1 put"],
)
def test_what_says_no_change_is_unreadable_whatever_its_checksum(body: bytes) -> None:
    """Another program's line, or one that was written wrongly: it is named as damage, not read as something like it."""
    good = change_line(change(6), INSTANCE)
    line = b"%08x %s\n" % (crc32c(body, INSTANCE), body)
    found = read_copy(A, head_line(Head(INSTANCE, 0, 0, None)) + line + good, INSTANCE)
    assert found.changes == {6: change(6)}


def joined(one: bytes, other: bytes) -> JoinedCopies:
    return together([read_copy(A, one, INSTANCE), read_copy(B, other, INSTANCE)])


def numbers(found: JoinedCopies) -> list[int]:
    assert all(one == change(one.number) for one in found.changes)
    return [one.number for one in found.changes]


ALL = [*BASE, *SINCE]


def test_whatever_two_lines_are_lost_in_different_copies_everything_is_there() -> None:
    for one in ALL[:-1]:
        for other in ALL[:-1]:
            found = joined(copy({one}), copy({other}))
            if one != other:
                assert (numbers(found), found.doubt, found.last) == (ALL, None, 8)
                assert found.mend == found.aside == [A, B]
                assert len(found.damage) == 2
            else:
                assert numbers(found) == [number for number in ALL if number != one]
                assert found.doubt is not None


def test_a_change_that_both_lost_is_a_doubt_that_names_it_and_one_of_the_base_is_one_that_does_not() -> None:
    found = joined(copy({7}), copy({7}))
    assert found.doubt == f"1 changes (7) cannot be read in {A} and {B}"
    assert found.doubt in found.damage
    found = joined(copy({4}), copy({4}))
    assert found.doubt == f"some of what stood in both at their last rewriting cannot be read in {A} and {B}"
    assert numbers(found) == [2, 5, 6, 7, 8]
    many = tuple(range(6, 16))
    lost = set(range(6, 12))
    found = joined(copy(lost, since=many), copy(lost, since=many))
    assert found.doubt == f"6 changes (6, 7, 8, 9, 10 …) cannot be read in {A} and {B}"
    found = joined(copy(lost - {6}, since=many), copy(lost - {6}, since=many))
    assert found.doubt == f"5 changes (7, 8, 9, 10, 11) cannot be read in {A} and {B}"


def test_an_older_doubt_goes_before_a_new_one() -> None:
    found = joined(copy({7}, doubt="of before"), copy({7}))
    assert found.doubt == "of before"
    assert any("1 changes (7)" in text for text in found.damage)


def test_one_copy_with_a_whole_base_and_one_without_a_head_make_a_whole() -> None:
    found = joined(copy(head=False), copy({7}))
    assert (numbers(found), found.doubt) == (ALL, None)
    found = joined(copy({7}), copy(head=False))
    assert (numbers(found), found.doubt) == (ALL, None)


def test_of_two_whole_bases_the_later_one_counts() -> None:
    """Power failed between the rewriting of one copy and that of the other: what is gone from it was replaced."""
    later = (2, 6, 7)
    for swapped in (False, True):
        two = (copy({7}), copy({8}, base=later, through=7, since=(8, 9)))
        found = joined(*(reversed(two) if swapped else two))
        assert (numbers(found), found.doubt, found.last) == ([2, 6, 7, 8, 9], None, 9)


def test_bases_of_two_rewritings_are_not_put_together() -> None:
    """Lines of one may have been replaced in the other: which, no one can tell when neither is whole."""
    for swapped in (False, True):
        two = (copy({4}), copy({6}, base=(2, 6, 7), through=7, since=(8, 9)))
        found = joined(*(reversed(two) if swapped else two))
        assert found.doubt is not None
        assert "at their last rewriting" in found.doubt
    # three lines are left, as many as there should be: but 4 and 5 are what 6 and 7 replaced
    found = joined(copy({2, 6}, base=(2, 6, 7), through=7, since=(8, 9)), copy({2, 6}))
    assert found.doubt is not None
    assert "at their last rewriting" in found.doubt


def test_a_copy_that_was_rewritten_later_says_up_to_where_changes_are_missing() -> None:
    """The older copy ends there; of the newer one nothing but its first line and what did not change is left."""
    found = joined(copy(since=()), copy({6, 7}, base=(2, 6, 7), through=7, since=()))
    assert (numbers(found), found.last) == ([2, 4, 5], 7)
    assert found.doubt == f"2 changes (6, 7) cannot be read in {A} and {B}"


def test_without_any_head_everything_is_in_doubt_and_nothing_that_can_be_read_is_left_out() -> None:
    found = joined(copy(head=False), copy(head=False))
    assert found.doubt is not None
    assert numbers(found) == ALL


def test_one_copy_alone_is_put_together_from_what_it_has() -> None:
    found = together([read_copy(A, copy({7}), INSTANCE)])
    assert (numbers(found), found.doubt) == ([2, 4, 5, 6, 8], f"1 changes (7) cannot be read in {A}")
    found = together([read_copy(A, copy({4}), INSTANCE)])
    assert (numbers(found), found.doubt) == (
        [2, 5, 6, 7, 8], f"some of what stood in both at their last rewriting cannot be read in {A}"
    )  # fmt: skip


def test_a_copy_that_ends_early_is_damage_only_if_more_than_the_write_under_way_is_missing() -> None:
    """Each change goes to one copy and then to the other: a power cut leaves them one apart, and that is no damage."""
    for short in range(4):
        for swapped in (False, True):
            two = (copy(), copy(since=SINCE[: len(SINCE) - short]))
            found = joined(*(reversed(two) if swapped else two))
            assert (numbers(found), found.doubt, found.last) == (ALL, None, 8)
            name = A if swapped else B
            assert found.damage == ([f"{name} ends {short} changes too early"] if short > 1 else [])
            assert found.torn == found.aside == []
            assert found.mend == ([name] if short else [])


def test_what_is_unreadable_at_the_end_is_damage_only_if_it_must_once_have_been_whole() -> None:
    """The first copy is written first: its bad end was never reported if the other does not know that change."""
    for first, second, torn in ((9, None, A), (None, 9, B), (9, 9, None), (8, None, None), (None, 8, B)):
        two = [
            copy({bad} if bad else set(), since=(*SINCE, 9) if bad == 9 else SINCE)[: None if bad is None else -1]
            for bad in (first, second)
        ]
        found = joined(*two)
        case = (first, second)
        assert (found.torn != []) == (torn is not None), case
        assert all(text.startswith(torn or "-") and text.endswith("its end") for text in found.torn), case
        assert (found.damage != []) == (torn is None), case
        assert (found.doubt is not None) == (None not in case), case
        assert found.aside == found.mend == [name for name, bad in zip((A, B), case, strict=True) if bad], case


def test_a_bad_end_that_held_more_than_the_write_under_way_is_damage_in_either_copy() -> None:
    """At most one change is on its way to the second copy: the others in its bad end were reported."""
    for swapped in (False, True):
        two = [copy(), copy({7, 8})[:-1]]
        found = joined(*(reversed(two) if swapped else two))
        name = A if swapped else B
        assert (numbers(found), found.doubt, found.torn) == (ALL, None, [])
        assert [text.startswith(name) for text in found.damage] == [True]
        assert found.aside == found.mend == [name]
