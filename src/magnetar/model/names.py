"""Names of namespaces and topics: parsing, partitions, and the texts a bad name is refused with.

Forms (rule 2.1)::

    t                                    persistent://public/default/t
    tenant/ns/t                          persistent://tenant/ns/t
    <domain>://tenant/ns/t               domain is persistent or non-persistent
    <domain>://tenant/cluster/ns/t       legacy (V1); everything after the third slash is the local name

A name that ends in ``-partition-<n>`` (decimal, no leading zero) denotes one internal topic of a partitioned one
(rule 2.2). Every command carries a topic name, so both parsers remember what they parsed, as much as fits into
:data:`REMEMBERED_BYTES`; the values are immutable and compare by their text.

Apache Pulsar takes names of any length and of any characters. Here a name has :data:`BYTES_MAX` bytes at most, and no
half of a surrogate pair, which no client can have meant.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, Literal
from urllib.parse import quote

from typing_extensions import override

from magnetar.model.byte_budget_cache import ByteBudgetCache
from magnetar.model.errors import InvalidNamespaceNameError, InvalidTopicNameError

Domain = Literal["persistent", "non-persistent"]

PARTITION_SUFFIX: Final = "-partition-"
BYTES_MAX: Final = 4096
"""The limit of a topic's full name in UTF-8; clients percent-encode it into a URL, whose line ends at some 16 kB."""
REMEMBERED_BYTES: Final = 2 << 20
"""What parsed topic names may take, about: some 4,000 usual ones. Namespaces have a quarter of it."""
_OBJECT_BYTES: Final = 400
"""What one remembered name takes besides its text."""
_SUFFIX_MAX: Final = len(PARTITION_SUFFIX) + 10
_PARTITION: Final = re.compile(r"-partition-(0|[1-9][0-9]{0,9})\Z")
_NAMED_ENTITY: Final = re.compile(r"[-=:.\w]*\Z", re.ASCII)
_INT_MAX: Final = (1 << 31) - 1


def is_valid_entity(name: str) -> bool:
    """Whether ``name`` may be a tenant, cluster or namespace: letters, digits and ``-=:._`` (rule 11.2.3)."""
    return bool(name) and _NAMED_ENTITY.match(name) is not None


def refusal_of_subscription(name: str) -> str:
    """Pulsar's text for a name that ``strictlyVerifySubscriptionName`` refuses, empty for others: characters as above.

    Such names need no quoting in a path of REST.
    """
    if _NAMED_ENTITY.match(name) is not None:
        return ""
    return f"Please let the subscription only contains '/w(a-zA-Z_0-9)' or '_', the current value is {name}"


@dataclass(frozen=True, slots=True)
class NamespaceName:
    """``tenant/namespace``, or the legacy ``tenant/cluster/namespace``."""

    text: str
    tenant: str = field(compare=False)
    cluster: str | None = field(compare=False)
    local_name: str = field(compare=False)

    @staticmethod
    def parse(text: str) -> NamespaceName:
        """Raises InvalidNamespaceNameError; the connection that sent it is closed (rule 1.3.19)."""
        return _parse_namespace(text)

    def topic(self, local_name: str, domain: Domain = "persistent") -> TopicName:
        """Return the topic of that local name in this namespace."""
        return TopicName.parse(f"{domain}://{self.text}/{local_name}")

    @override
    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class TopicName:
    """One topic's full name in its parts."""

    fqn: str
    """``domain://tenant/namespace/local``; what all other parts are derived from."""
    domain: Domain = field(compare=False)
    namespace: NamespaceName = field(compare=False)
    local_name: str = field(compare=False)
    partition_index: int = field(compare=False)
    """The n of ``-partition-n``, or -1."""

    @staticmethod
    def parse(text: str) -> TopicName:
        """Raises InvalidTopicNameError, whose text is what the wire carries (rule 1.3.19)."""
        return _parse_topic(text)

    @staticmethod
    def stored(text: str) -> TopicName:
        """Return a name that was accepted once, even if it is refused today: what is on disk must not stop a broker."""
        return _parse_topic(text, trusted=True)

    @property
    def persistent(self) -> bool:
        return self.domain == "persistent"

    @property
    def tenant(self) -> str:
        return self.namespace.tenant

    @property
    def is_partition(self) -> bool:
        return self.partition_index >= 0

    @property
    def parent(self) -> TopicName:
        """The partitioned topic this is a partition of; itself if it is none."""
        if self.partition_index < 0:
            return self
        return _parse_topic(self.fqn[: self.fqn.rindex(PARTITION_SUFFIX)], trusted=True)

    @property
    def namesake(self) -> TopicName:
        """The topic of the same name in the other domain; of a partition, that of its partitioned topic."""
        return self.namespace.topic(self.parent.local_name, "non-persistent" if self.persistent else "persistent")

    def partition(self, index: int) -> TopicName:
        """Return the internal topic of partition ``index`` (from 0)."""
        suffix = f"{PARTITION_SUFFIX}{index}"
        return self if self.fqn.endswith(suffix) else _parse_topic(self.fqn + suffix, trusted=True)

    def partitions(self, count: int) -> list[TopicName]:
        """Return the internal topics of a partitioned topic with ``count`` partitions."""
        return [self.partition(index) for index in range(count)]

    @property
    def rest_path(self) -> str:
        """``domain/tenant/namespace/local`` with the local name percent-encoded (rule 11.1.1)."""
        return f"{self.domain}/{self.namespace.text}/{quote(self.local_name, safe='')}"

    @override
    def __str__(self) -> str:
        return self.fqn


_namespaces = ByteBudgetCache[str, NamespaceName](REMEMBERED_BYTES // 4)
_topics = ByteBudgetCache[str, TopicName](REMEMBERED_BYTES)


def forget_names() -> None:
    """Let go of the names that were parsed: those of topics that are gone keep memory around them."""
    _namespaces.clear()
    _topics.clear()


def _size(text: str) -> int:
    """What a name takes: its parts are copies, and a character may take four bytes."""
    return _OBJECT_BYTES + (2 if text.isascii() else 8) * len(text)


def _parse_namespace(text: str) -> NamespaceName:
    found = _namespaces.get(text)
    if found is None:
        if wrong := _absurd(text):
            raise InvalidNamespaceNameError(f"Invalid namespace format. {wrong}")
        found = _take_namespace_apart(text)
        _namespaces.put(text, found, _size(text))
    return found


def _take_namespace_apart(text: str) -> NamespaceName:
    parts = text.split("/")
    if len(parts) not in (2, 3) or not all(map(is_valid_entity, parts)):
        raise InvalidNamespaceNameError(
            f"Invalid namespace format. expected <tenant>/<namespace> or <tenant>/<cluster>/<namespace> but got: {text}"
        )
    return NamespaceName(text, parts[0], parts[1] if len(parts) == 3 else None, parts[-1])


def _parse_topic(text: str, *, trusted: bool = False) -> TopicName:
    found = _topics.get(text)
    if found is None:
        wrong = "" if trusted else _absurd(text)
        if wrong:
            raise _invalid(wrong)
        found = _take_topic_apart(text)
        _topics.put(text, found, _size(text))
    return found


def _absurd(text: str) -> str:
    """Return why a text cannot be a name, without repeating all of it; empty if it can."""
    try:
        size = len(text) if text.isascii() or len(text) > BYTES_MAX else len(text.encode())
    except UnicodeEncodeError:
        return "it holds half of a surrogate pair, which is no character"
    if size > BYTES_MAX and not (size <= BYTES_MAX + _SUFFIX_MAX and _PARTITION.search(text)):
        return f"{size} bytes, beginning with {text[:64]!r}; a name has at most {BYTES_MAX}"
    return ""


def _take_topic_apart(text: str) -> TopicName:
    full = text if "://" in text else _expand_short(text)
    scheme, _, rest = full.partition("://")
    domain = _domain(scheme)
    parts = rest.split("/", 3)
    if len(parts) < 3:
        raise _invalid(f"Invalid topic name: {full}")
    if not parts[-1].strip():
        raise _invalid(f"Invalid topic name: {full}. Topic local name must not be blank.")
    index = _partition_index(full)
    namespace = _namespace_of(parts[:-1])
    fqn = f"{domain}://{namespace.text}/{parts[-1]}"
    if text != fqn:
        return _parse_topic(fqn, trusted=True)
    return TopicName(fqn, domain, namespace, parts[-1], index)


def _expand_short(text: str) -> str:
    # empty parts do not count, so "/t" is the topic "t"; that is how Pulsar splits short names
    parts = [part for part in text.split("/") if part]
    if len(parts) == 3:
        return f"persistent://{text}"
    if len(parts) == 1:
        return f"persistent://public/default/{parts[0]}"
    raise _invalid(
        f"Invalid short topic name '{text}', it should be in the format of <tenant>/<namespace>/<topic> or <topic>"
    )


def _domain(scheme: str) -> Domain:
    if scheme == "persistent":
        return "persistent"
    if scheme == "non-persistent":
        return "non-persistent"
    raise _invalid(f"Invalid topic domain: '{scheme}'")


def _namespace_of(parts: list[str]) -> NamespaceName:
    text = "/".join(parts)
    if not all(parts):
        raise _invalid(f"Invalid namespace format. namespace: {text}")
    for part in parts:
        if not is_valid_entity(part):
            raise _invalid(f"Invalid named entity: {part}")
    return _parse_namespace(text)


def _partition_index(name: str) -> int:
    found = _PARTITION.search(name)
    if found is None:
        return -1
    index = int(found[1])
    return index if index <= _INT_MAX else -1


def _invalid(reason: str) -> InvalidTopicNameError:
    return InvalidTopicNameError(f"Invalid topic name: {reason}")
