"""Names of namespaces and topics: parsing, partitions, and the texts a bad name is refused with.

Forms (SEMANTICS 2.1)::

    t                                    persistent://public/default/t
    tenant/ns/t                          persistent://tenant/ns/t
    <domain>://tenant/ns/t               domain is persistent or non-persistent
    <domain>://tenant/cluster/ns/t       legacy (V1); everything after the third slash is the local name

A name that ends in ``-partition-<n>`` (decimal, no leading zero) denotes one internal topic of a partitioned one
(2.2). Every command carries a topic name, so both parsers remember what they parsed; the values are immutable and
compare by their text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Literal
from urllib.parse import quote

from typing_extensions import override

from magnetar.model.errors import InvalidNamespaceNameError, InvalidTopicNameError

Domain = Literal["persistent", "non-persistent"]

PARTITION_SUFFIX: Final = "-partition-"
_CACHED_NAMES: Final = 65_536
_PARTITION: Final = re.compile(r"-partition-(0|[1-9][0-9]{0,9})\Z")
_NAMED_ENTITY: Final = re.compile(r"[-=:.\w]*\Z", re.ASCII)
_INT_MAX: Final = (1 << 31) - 1


def is_valid_entity(name: str) -> bool:
    """Whether ``name`` may be a tenant, cluster or namespace: letters, digits and ``-=:._`` (11.2.3)."""
    return bool(name) and _NAMED_ENTITY.match(name) is not None


@dataclass(frozen=True, slots=True)
class NamespaceName:
    """``tenant/namespace``, or the legacy ``tenant/cluster/namespace``."""

    text: str
    tenant: str = field(compare=False)
    cluster: str | None = field(compare=False)
    local_name: str = field(compare=False)

    @staticmethod
    def parse(text: str) -> NamespaceName:
        """Raises InvalidNamespaceNameError; the connection that sent it is closed (1.3.19)."""
        return _parse_namespace(text)

    def topic(self, local_name: str, domain: Domain = "persistent") -> TopicName:
        """The topic of that local name in this namespace."""
        return TopicName.parse(f"{domain}://{self.text}/{local_name}")

    @override
    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class TopicName:
    """One topic's full name, taken apart."""

    fqn: str
    """``domain://tenant/namespace/local``; what all other parts are derived from."""
    domain: Domain = field(compare=False)
    namespace: NamespaceName = field(compare=False)
    local_name: str = field(compare=False)
    partition_index: int = field(compare=False)
    """The n of ``-partition-n``, or -1."""

    @staticmethod
    def parse(text: str) -> TopicName:
        """Raises InvalidTopicNameError, whose text is what the wire carries (1.3.19)."""
        return _parse_topic(text)

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
        return _parse_topic(self.fqn[: self.fqn.rindex(PARTITION_SUFFIX)]) if self.partition_index >= 0 else self

    def partition(self, index: int) -> TopicName:
        """The internal topic of partition ``index`` (from 0)."""
        suffix = f"{PARTITION_SUFFIX}{index}"
        return self if self.fqn.endswith(suffix) else _parse_topic(self.fqn + suffix)

    def partitions(self, count: int) -> list[TopicName]:
        """The internal topics of a partitioned topic with ``count`` partitions."""
        return [self.partition(index) for index in range(count)]

    @property
    def rest_path(self) -> str:
        """``domain/tenant/namespace/local`` with the local name percent-encoded (11.1.1)."""
        return f"{self.domain}/{self.namespace.text}/{quote(self.local_name, safe='')}"

    @override
    def __str__(self) -> str:
        return self.fqn


@lru_cache(_CACHED_NAMES)
def _parse_namespace(text: str) -> NamespaceName:
    parts = text.split("/")
    if len(parts) not in (2, 3) or not all(map(is_valid_entity, parts)):
        raise InvalidNamespaceNameError(
            f"Invalid namespace format. expected <tenant>/<namespace> or <tenant>/<cluster>/<namespace> but got: {text}"
        )
    return NamespaceName(text, parts[0], parts[1] if len(parts) == 3 else None, parts[-1])


@lru_cache(_CACHED_NAMES)
def _parse_topic(text: str) -> TopicName:
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
        return _parse_topic(fqn)
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
