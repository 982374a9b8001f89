"""The topic directory against a plain list of names."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from magnetar.broker.namespaces.topic_directory import DOMAINS, TopicDirectory, merged
from magnetar.model.names import NamespaceName, TopicName
from magnetar.model.system_topics import is_system_topic

NAMES = [
    f"{domain}://{namespace}/{local}"
    for domain in DOMAINS
    for namespace in ("public/default", "a/b", "a/cluster/b", "pulsar/system", "pulsar/host:8080")
    for local in ("t", "t-partition-0", "t-partition-1", "t-partition-10", "t-partition-x", "t-partition-1-partition-2",
                  "a/b", "__change_events", "__change_events-partition-0", "x-__transaction_pending_ack", "healthcheck",
                  "transaction_coordinator_assign-partition-0", "it__is mine", "é")
]  # fmt: skip
PARSED = {name: TopicName.parse(name) for name in NAMES}
NAMESPACES = sorted({name.namespace for name in PARSED.values()}, key=str)


def same(directory: TopicDirectory, model: set[str]) -> None:
    for namespace in NAMESPACES:
        inside = sorted(name for name in model if PARSED[name].namespace == namespace)
        mine = [name for name in inside if not is_system_topic(PARSED[name])]
        for system, expected in ((True, inside), (False, mine)):
            assert [name for piece in directory.pieces(namespace, system=system) for name in piece] == expected
        assert directory.count(namespace) == len(mine)
    assert sorted(directory) == sorted(model)


@given(st.sets(st.sampled_from(NAMES)), st.lists(st.tuples(st.booleans(), st.sampled_from(NAMES)), max_size=30))
def test_as_a_list_of_names(start: set[str], changes: list[tuple[bool, str]]) -> None:
    directory, model = TopicDirectory(), set(start)
    directory.fill([*start, "internal://compacted/7/1", "internal://transaction-log/0"])
    same(directory, model)
    for add, name in changes:
        if add:
            assert directory.add(PARSED[name]) == (name not in model)
            model.add(name)
        else:
            assert directory.remove(PARSED[name]) == (name in model)
            model.discard(name)
    same(directory, model)


def test_partitions_in_the_order_of_their_numbers() -> None:
    directory = TopicDirectory()
    directory.fill(NAMES)
    topic = TopicName.parse("persistent://a/b/t")
    assert [part.partition_index for part in directory.partitions_of(topic)] == [0, 1, 10]
    assert [part.local_name for part in directory.partitions_of(topic.partition(1))] == ["t-partition-1-partition-2"]
    assert directory.partitions_of(TopicName.parse("persistent://a/b/none")) == []
    assert directory.partitions_of(NamespaceName.parse("pulsar/system").topic("transaction_coordinator_assign"))


@given(st.sets(st.integers(0, 60)), st.sets(st.integers(61, 99)), st.integers(1, 5))
def test_few_among_many(many: set[int], few: set[int], piece: int) -> None:
    few |= set(range(0, 61, 7)) - many
    ordered = [f"{number:02d}" for number in sorted(many)]
    pieces = [ordered[at : at + piece] for at in range(0, len(ordered), piece)]
    found = [name for part in merged(pieces, [f"{number:02d}" for number in sorted(few)]) for name in part]
    assert found == [f"{number:02d}" for number in sorted(many | few)]
