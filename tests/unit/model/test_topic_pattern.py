"""Patterns of topic names: rule 2.17, and what clients of each language send."""

from __future__ import annotations

import re

import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from magnetar.model.errors import InvalidTopicNameError, ServerError
from magnetar.model.topic_pattern import TopicPattern, pattern_subject, without_scheme

NAMES = [
    "persistent://public/default/flights",
    "persistent://public/default/flights-eu-partition-0",
    "persistent://public/default/flights-eu-partition-1",
    "non-persistent://public/default/flights-now",
    "persistent://public/default/trains",
]
FLIGHTS = NAMES[:4]


def chosen(pattern: str, names: list[str] = NAMES) -> list[str]:
    return [name for _, piece in TopicPattern(pattern).chosen(names) for name in piece]


@pytest.mark.parametrize(
    "pattern",
    [
        "public/default/flights.*",  # Go, C++ and Python take the scheme off
        "persistent://public/default/flights.*",
        "non-persistent://public/default/flights.*",
        "^persistent://public/default/flights.*$",  # Java, Pattern.compile("persistent://…") anchored by its users
        "^public/default/flights.*$",
        "(?:persistent://public/default/flights.*)",
        "^(persistent://public/default/flights.*)$",
        r"\Qpersistent://public/default/flights\E.*",  # Java: Pattern.quote
        r"^\Qpublic/default/flights\E.*",
        "public/default/(?i)FLIGHTS.*",
    ],
)
def test_the_scheme_does_not_count_wherever_it_stands(pattern: str) -> None:
    assert chosen(pattern) == FLIGHTS
    assert [name for name in NAMES if TopicPattern(pattern).matches(name)] == FLIGHTS


def test_partitions_match_by_their_topic_and_the_whole_name_counts() -> None:
    assert chosen("public/default/flights-eu") == NAMES[1:3]
    assert chosen("public/default/flights-e") == []
    assert chosen("public/default/flights-eu-partition-0") == []
    assert chosen("default/flights") == []
    assert pattern_subject("persistent://a/b/c-partition-x") == "a/b/c-partition-x"
    assert pattern_subject("persistent://a/b/c-partition-1-partition-12") == "a/b/c-partition-1"


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("public/default/[", r"^Invalid topics pattern: public/default/\[: missing \]"),
        ("(?=a)b", "invalid perl operator"),
        (r"(a)\1", "invalid escape sequence"),
        ("a++", "bad repetition"),
        ("(a{1000}){1000}", "invalid repetition size"),
        (".{1000}", "pattern too large"),
        ("x{0,1000}" * 10, "pattern too large"),
        ("x" * 10_001, "10001 characters; at most 10000"),
        ("half \ud800", "surrogate"),
        ("http://public/default/a", "Does not support topic domain: http"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(pattern: str, reason: str) -> None:
    with pytest.raises(InvalidTopicNameError, match=reason):
        TopicPattern(pattern)


@pytest.mark.parametrize(
    "pattern", ["a/b/(?!c).*", "(?<=a)b", r"(a)\1", "a*+", "(?>a)", ".{1000}", "a{1001}", "x" * 10_001]
)
def test_what_other_engines_have_is_refused_with_a_code_that_clients_do_not_repeat(pattern: str) -> None:
    with pytest.raises(InvalidTopicNameError) as refused:
        TopicPattern(pattern)
    assert refused.value.code is ServerError.NotAllowedError


@pytest.mark.parametrize("pattern", ["a/b/[", "(", "a)", "*", "[z-a]", "http://a/b/c"])
def test_what_no_engine_has_is_an_invalid_name_as_in_apache_pulsar(pattern: str) -> None:
    with pytest.raises(InvalidTopicNameError) as refused:
        TopicPattern(pattern)
    assert refused.value.code is ServerError.InvalidTopicName


def test_no_pattern_stays_in_the_engine() -> None:
    for number in range(200):
        TopicPattern(f"public/default/{number}.*")
    assert re2._Regexp._make.cache_info().currsize == 0


def test_a_large_pattern_takes_few_names_at_a_time() -> None:
    """The work of one piece has a bound: names times instructions."""
    names = [f"persistent://public/default/{i:030d}" for i in range(3000)]
    assert [cost for cost, _ in TopicPattern(".*").chosen(names)] == [500] * 6
    large = TopicPattern("public/default/(0|1|[2-9]){0,400}")
    costs, pieces = zip(*large.chosen(names), strict=True)
    assert len(pieces) >= 200
    assert max(costs) <= 500
    assert sum(costs) >= 20_000
    assert sum(map(len, pieces)) == 3000


@given(st.text("ab|*+()?.", max_size=12), st.lists(st.text("ab", max_size=6), max_size=5))
def test_what_both_engines_take_matches_the_same(expression: str, local_names: list[str]) -> None:
    try:
        expected = re.compile(f"p/d/(?:{expression})")
        pattern = TopicPattern(f"p/d/(?:{expression})")
    except (re.error, InvalidTopicNameError):
        return
    for local in local_names:
        assert pattern.matches(f"persistent://p/d/{local}") == (expected.fullmatch(f"p/d/{local}") is not None)


def test_scheme_is_taken_out_once() -> None:
    assert without_scheme("a/b/c") == "a/b/c"
    assert without_scheme("^persistent://a/b/c") == "^a/b/c"
    assert without_scheme("non-persistent://a/b/c") == "a/b/c"
