"""The question that ``magnetar permissions explain`` asks a broker, made of its words, and the answer in words."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlencode

from magnetar.authorization.operation_names import names_for, normal
from magnetar.model.errors import InvalidValueError

_WIDTH: Final = 110
_OF_SUBSCRIPTIONS: Final = frozenset({"clear-backlog", "unsubscribe"})
"""What may be done to one subscription of a topic and to all of a namespace."""


def question_path(
    role: str, operation: str, target: str | None, named: Mapping[str, str | None], original: str | None = None
) -> str:
    """Return the path with the query; ``target`` is an object in short form, whose subscription may be named beside
    it. Raises InvalidValueError."""
    of = {name: value for name, value in named.items() if value is not None}
    if target is not None:
        short = short_form(operation, target)
        if set(of) == {"subscription"} and set(short) == {"topic"}:
            short |= of
        elif of:
            raise InvalidValueError(f"give either {target[:80]!r} or --{next(iter(of))}, not both")
        of = short
    wanted = {"role": role, "operation": operation, **of}
    if original is not None:
        wanted["original"] = original
    return f"/admin/v2/permissions/explain?{urlencode(wanted)}"


def short_form(operation: str, target: str) -> dict[str, str]:
    """What an object is called whose kind the operation implies: ``orders/sub1`` for one on subscriptions of topics.

    On a topic: ``topic``, ``topic/subscription``, ``tenant/namespace/topic``, ``tenant/namespace/topic/subscription``,
    or a full name with ``://``, after which a subscription may follow. Otherwise ``tenant/namespace`` or ``tenant``.
    Two parts are a namespace for an operation that namespaces have and that names no subscription. Raises
    InvalidValueError, for what could be either.
    """
    word = normal(operation)
    if "://" in target:
        scheme, _, rest = target.partition("://")
        tenant, namespace, topic, *more = [*rest.split("/", 3), "", ""][:4] if rest.count("/") >= 2 else ["", "", ""]
        if not topic:
            raise InvalidValueError(f"{target[:80]!r} is no topic; expected {scheme}://tenant/namespace/topic")
        return _with_subscription(f"{scheme}://{tenant}/{namespace}/{topic}", more[0] if more else "")
    parts = target.split("/", 3)
    if len(parts) == 2 and word in names_for("namespace"):
        if word in _OF_SUBSCRIPTIONS:
            topic, subscription = parts
            raise InvalidValueError(
                f"{target[:80]!r} may be a namespace, or the subscription {subscription[:80]!r} of a topic in "
                f"public/default; write --namespace {target[:80]}, or public/default/{topic[:80]}/{subscription[:80]}"
            )
        return {"namespace": target}
    if word in names_for("topic"):
        if len(parts) in (1, 2):
            return _with_subscription(parts[0], parts[1] if len(parts) == 2 else "")
        return _with_subscription("/".join(parts[:3]), parts[3] if len(parts) == 4 else "")
    if word in names_for("tenant") and len(parts) == 1:
        return {"tenant": target}
    # the broker says what is wrong with it
    return {"tenant": target} if len(parts) == 1 else {"namespace": target} if len(parts) == 2 else {"topic": target}


def _with_subscription(topic: str, subscription: str) -> dict[str, str]:
    return {"topic": topic, "subscription": subscription} if subscription else {"topic": topic}


def read_as(operation: str, target: str | None) -> str:
    """How an object of two parts was read, in words, if it was read as a subscription: many names have two."""
    if target is None or "://" in target or target.count("/") != 1:
        return ""
    short = short_form(operation, target)
    if "subscription" not in short:
        return ""
    return (
        f"{target} is read as the subscription {short['subscription']} of persistent://public/default/{short['topic']}"
    )


def in_words(answer: Mapping[str, Any], read: str = "") -> Iterator[str]:
    """The lines that are printed for an answer; ``read`` is how its object was read."""
    verdict = "yes" if answer["allowed"] else "no"
    yield from textwrap.wrap(f"{verdict}: {answer['reason']}", _WIDTH, subsequent_indent="  ", break_long_words=False)
    if read:
        yield f"({read})"
    if answer["note"]:
        yield f"({answer['note']})"
    if answer["remedy"]:
        yield "-> " + answer["remedy"]
    if len(answer["accesses"]) > 1:
        yield ""
        for access in answer["accesses"]:
            yield f"{'yes' if access['allowed'] else 'no ':3} {access['access']}"
