"""Typed parameters of routes.

Path parts reach the routes percent-encoded (:mod:`magnetar.admin.http.encoded_path`), so that a topic's local name may
contain an encoded slash; the types here decode them. Flags are read as Pulsar reads them: anything but ``true`` is
false.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final
from urllib.parse import unquote, unquote_plus

from magnetar.admin.http.arguments import RequestParameter
from magnetar.admin.http.router import register_words
from magnetar.model.errors import InvalidTopicNameError, PreconditionFailedError
from magnetar.model.names import NamespaceName, TopicName, is_valid_entity


def read_twice(text: str) -> str:
    """Return a name of a path as it was before it was quoted as a form's value and then as a part of a path."""
    return unquote_plus(unquote(text))


PathText = Annotated[str, RequestParameter(read=unquote)]
NameText = Annotated[str, RequestParameter(read=unquote_plus)]
"""The name of a topic: ``+`` is a space there, as Java's clients write it."""
SubscriptionText = Annotated[str, RequestParameter(read=read_twice)]
"""The name of a topic's subscription, which Java's clients quote twice, and Apache Pulsar's broker reads so."""
QUOTED_TWICE: Final = "/{topic}/subscription/{subscription}"
"""Where a path has such a name."""
Flag = Annotated[bool, RequestParameter(read=lambda text: text.lower() == "true")]

TOPIC: Final = "/admin/v2/{domain:domain}/{tenant}/{namespace}/{topic}"
TOPICS: Final = "/admin/v2/{domain:domain}/{tenant}/{namespace}"
NAMESPACE: Final = "/admin/v2/namespaces/{tenant}/{namespace}"

# urllib makes its table of all hexadecimal pairs for the first of them: in the midst of a burst its 500 small objects
# would keep the memory around them for ever
unquote("%2F")
# keeps topic routes from taking /admin/v2/namespaces/... and the like
register_words("domain", ("persistent", "non-persistent"))


def path_parts(parameters: Mapping[str, str], route: str = "") -> dict[str, str]:
    """Return the parameters of a path by their names, decoded as the route decodes them, whose path is ``route``."""
    of_namespace = "namespace" in parameters and "topic" not in parameters
    names = () if of_namespace else ("topic", "subscription")
    parts = {name: unquote_plus(text) if name in names else unquote(text) for name, text in parameters.items()}
    if QUOTED_TWICE in route:
        parts["subscription"] = read_twice(parameters["subscription"])
    return parts


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
