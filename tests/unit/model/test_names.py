"""Names of topics and namespaces: forms, parts and refusals (rules 1.3.19, 2.1, 2.2)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetar.model import names
from magnetar.model.errors import InvalidNamespaceNameError, InvalidTopicNameError, ServerError
from magnetar.model.names import BYTES_MAX, NamespaceName, TopicName


@pytest.mark.parametrize(
    ("text", "fqn"),
    [
        ("t", "persistent://public/default/t"),
        ("/t", "persistent://public/default/t"),
        ("acme/main/t", "persistent://acme/main/t"),
        ("persistent://acme/main/t", "persistent://acme/main/t"),
        ("non-persistent://acme/main/t", "non-persistent://acme/main/t"),
        ("persistent://acme/us/main/t", "persistent://acme/us/main/t"),
        ("persistent://acme/us/main/t/with/slashes", "persistent://acme/us/main/t/with/slashes"),
        ("persistent://acme/main/with space é", "persistent://acme/main/with space é"),
    ],
)
def test_short_and_legacy_forms_have_one_full_name(text: str, fqn: str) -> None:
    assert TopicName.parse(text).fqn == fqn
    assert TopicName.parse(fqn) == TopicName.parse(text)
    assert str(TopicName.parse(text)) == fqn


def test_a_full_name_has_its_parts() -> None:
    name = TopicName.parse("non-persistent://acme/main/t-partition-3")
    assert (name.domain, name.persistent, name.tenant) == ("non-persistent", False, "acme")
    assert name.namespace == NamespaceName.parse("acme/main")
    assert name.namespace.cluster is None
    assert name.local_name == "t-partition-3"
    assert name.rest_path == "non-persistent/acme/main/t-partition-3"


def test_legacy_name_has_a_cluster() -> None:
    name = TopicName.parse("persistent://acme/us/main/a/b")
    assert (name.tenant, name.namespace.cluster, name.namespace.local_name) == ("acme", "us", "main")
    assert name.namespace.text == "acme/us/main"
    assert name.local_name == "a/b"
    assert name.rest_path == "persistent/acme/us/main/a%2Fb"


@pytest.mark.parametrize(
    ("local", "index"),
    [
        ("t", -1),
        ("t-partition-0", 0),
        ("t-partition-17", 17),
        ("t-partition-01", -1),
        ("t-partition--1", -1),
        ("t-partition-+1", -1),
        ("t-partition-", -1),
        ("t-partition-x", -1),
        ("t-partition-1x", -1),
        ("t-partition-1-partition-2", 2),
        ("t-partition-2147483647", 2147483647),
        ("t-partition-2147483648", -1),
        ("-partition-5", 5),
        ("t-partition-1\n", -1),
    ],
)
def test_partition_index(local: str, index: int) -> None:
    name = TopicName.parse(f"persistent://public/default/{local}")
    assert name.partition_index == index
    assert name.is_partition == (index >= 0)


def test_partition_and_parent() -> None:
    topic = TopicName.parse("t")
    second = topic.partition(1)
    assert second.fqn == "persistent://public/default/t-partition-1"
    assert second.parent is topic
    assert second.partition(1) is second
    assert topic.parent is topic
    assert [p.partition_index for p in topic.partitions(3)] == [0, 1, 2]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "a/b",
            "Invalid short topic name 'a/b', it should be in the format of <tenant>/<namespace>/<topic> or <topic>",
        ),
        ("", "Invalid short topic name '', it should be in the format of <tenant>/<namespace>/<topic> or <topic>"),
        (
            "a/b/c/d",
            "Invalid short topic name 'a/b/c/d', it should be in the format of <tenant>/<namespace>/<topic> or <topic>",
        ),
        ("kafka://a/b/c", "Invalid topic domain: 'kafka'"),
        ("persistent://a/b", "Invalid topic name: persistent://a/b"),
        ("persistent://a/b/", "Invalid topic name: persistent://a/b/. Topic local name must not be blank."),
        ("persistent://a//t", "Invalid namespace format. namespace: a/"),
        ("persistent://a/b@d/t", "Invalid named entity: b@d"),
        ("persistent://é/b/t", "Invalid named entity: é"),
    ],
)
def test_refused_with_pulsars_text(text: str, reason: str) -> None:
    with pytest.raises(InvalidTopicNameError) as caught:
        TopicName.parse(text)
    assert str(caught.value) == f"Invalid topic name: {reason}"
    assert caught.value.code is ServerError.InvalidTopicName


@pytest.mark.parametrize("text", ["public", "", "a/b/c/d", "a/", "/b", "a/b@", "a//b", "a/b\n"])
def test_malformed_namespace(text: str) -> None:
    with pytest.raises(InvalidNamespaceNameError, match=r"Invalid namespace format\. expected <tenant>/<namespace>"):
        NamespaceName.parse(text)


def test_topic_of_namespace() -> None:
    assert NamespaceName.parse("a/b").topic("t", "non-persistent").fqn == "non-persistent://a/b/t"


def test_equal_names_are_one_object() -> None:
    """Every command carries a name: parsing it again must cost a dictionary look-up."""
    assert TopicName.parse("some-topic") is TopicName.parse("some-topic")
    assert TopicName.parse("some-topic") is TopicName.parse("persistent://public/default/some-topic")


@given(st.text())
def test_any_text_is_a_name_or_one_error(text: str) -> None:
    try:
        name = TopicName.parse(text)
    except InvalidTopicNameError:
        return
    assert TopicName.parse(name.fqn) == name
    assert name.parent.partition_index == -1 or name.parent is not name


def test_absurd_names_are_refused_without_repeating_them() -> None:
    longest = "x" * (BYTES_MAX - len("persistent://public/default/"))
    full = f"persistent://public/default/{longest}"
    assert TopicName.parse(full).partition(2_147_483_647).parent is TopicName.parse(full)
    assert TopicName.parse(f"{full}-partition-12").parent.fqn == full, "clients ask for it by that name"
    for text in (full + "x", full + "-partition-x", full[:-1] + "é", "é" * BYTES_MAX, "x" * 1_000_000):
        with pytest.raises(InvalidTopicNameError, match="a name has at most 4096") as refused:
            TopicName.parse(text)
        assert len(str(refused.value)) < 250
        assert len(TopicName.stored(text).local_name) > 1000, "but a broker starts with what it has"
    with pytest.raises(InvalidNamespaceNameError, match="a name has at most 4096") as refused_namespace:
        NamespaceName.parse("public/" + "x" * 5000)
    assert len(str(refused_namespace.value)) < 250
    with pytest.raises(InvalidTopicNameError, match="half of a surrogate pair"):
        TopicName.parse("a\ud800b")


def test_the_cache_of_names_is_bounded_in_bytes() -> None:
    for number in range(5000):
        TopicName.parse(f"{number}{'x' * 3000}")
    kept = len(names._topics)
    assert 150 < kept < names.REMEMBERED_BYTES / 3000
    usual = TopicName.parse("usual")
    assert TopicName.parse("usual") is usual
    for number in range(500):
        TopicName.parse(f"{number}{'y' * 3000}")
        TopicName.parse("usual")
    assert TopicName.parse("usual") is usual, "what is asked for stays"
