"""Typed parameters of routes.

Path parts reach the routes percent-encoded (:mod:`magnetar.admin.http.encoded_path`), so that a topic's local name may
contain an encoded slash; the types here decode them. Flags are read as Pulsar reads them: anything but ``true`` is
false.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final
from urllib.parse import unquote

from fastapi import Path, Query
from pydantic import AfterValidator, BeforeValidator
from starlette.convertors import Convertor, register_url_convertor
from typing_extensions import override

from magnetar.model.errors import InvalidTopicNameError, PreconditionFailedError
from magnetar.model.names import NamespaceName, TopicName, is_valid_entity

PathText = Annotated[str, Path(), AfterValidator(unquote)]
Flag = Annotated[bool, Query(), BeforeValidator(lambda value: str(value).lower() == "true")]

TOPIC: Final = "/admin/v2/{domain:domain}/{tenant}/{namespace}/{topic}"
TOPICS: Final = "/admin/v2/{domain:domain}/{tenant}/{namespace}"
NAMESPACE: Final = "/admin/v2/namespaces/{tenant}/{namespace}"


class WordConvertor(Convertor[str]):
    """Matches a path part that is one of the given words."""

    def __init__(self, words: Iterable[str]) -> None:
        self.regex = "|".join(words)  # type: ignore[misc]  # a class variable there, one per instance here

    @override
    def convert(self, value: str) -> str:
        return value

    @override
    def to_string(self, value: str) -> str:
        return value


class OtherWordConvertor(WordConvertor):
    """Matches a path part that is none of the given words."""

    def __init__(self, words: Iterable[str]) -> None:
        self.regex = rf"(?!(?:{'|'.join(words)})(?:/|$))[^/]+"  # type: ignore[misc]  # as above


# keeps topic routes from taking /admin/v2/namespaces/... and the like
register_url_convertor("domain", WordConvertor(("persistent", "non-persistent")))


def namespace_name(tenant: str, namespace: str) -> NamespaceName:
    """The name of a namespace from two parts of a path. Raises PreconditionFailedError with Pulsar's text."""
    if not is_valid_entity(tenant) or not is_valid_entity(namespace):
        raise PreconditionFailedError("Namespace name is not valid")
    return NamespaceName.parse(f"{tenant}/{namespace}")


def topic_name(domain: str, tenant: str, namespace: str, topic: str) -> TopicName:
    """The name of a topic from four parts of a path. Raises PreconditionFailedError with Pulsar's text."""
    within = namespace_name(tenant, namespace)
    if "/" in topic:
        # domain://tenant/namespace/a/b would read as a legacy name with a cluster
        raise PreconditionFailedError("Topic name is not valid: magnetar does not take slashes in local names")
    try:
        return TopicName.parse(f"{domain}://{within.text}/{topic}")
    except InvalidTopicNameError:
        raise PreconditionFailedError("Topic name is not valid") from None
