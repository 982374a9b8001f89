"""What to do about a refused login, a missing grant and the like, in the words of who asked."""

from __future__ import annotations

from magnetar.model.errors import MagnetarError, ServerError
from magnetar.model.names import TopicName
from magnetar.protocol import commands as c
from magnetar.security.asker_words import TOOL_WORDS, AskerWords
from magnetar.security.credentials.method import ClientCredentials


def advice(
    error: ServerError, asked: c.Command | None, credentials: ClientCredentials, words: AskerWords = TOOL_WORDS
) -> str | None:
    """Return the next step after a refusal that this client knows more about than its code; None for others."""
    if error is ServerError.AuthenticationError:
        if credentials.method is None:
            return f"this client shows no credentials: give {words.login}"
        if credentials.method == "basic":
            return f"this client shows {credentials}; user or password is wrong"
        return f"this client shows {credentials}; has it expired, and is it meant for this broker?"
    if error is ServerError.MetadataError and isinstance(asked, c.CommandUnsubscribe):
        return "close the other consumers of this subscription first, or call unsubscribe(force=True)"
    if error is ServerError.ServiceNotReady and isinstance(asked, c.CommandLookupTopic):
        return unknown_listener(asked.advertised_listener_name)
    if error is ServerError.AuthorizationError:
        return f"what this client may do follows from {credentials}{_grant(asked)}"
    return None


def unknown_listener(name: str | None) -> str | None:
    """The next step where a broker may not have the listener that was asked for; None if none was.

    It is asked again, as Java's client does: another broker may have it.
    """
    if name is None:
        return None
    return (
        f"this client asks for the listener {name!r}: name one of the broker's advertisedListeners as "
        "listener_name, or leave it out; otherwise try again in a moment"
    )


def _grant(asked: c.Command | None) -> str:
    """Return the command that grants what was asked for, as far as that is known."""
    if isinstance(asked, c.CommandGetTopicsOfNamespace):
        return (
            f"; grant it with: pulsar-admin namespaces grant-permission {asked.namespace} --role ROLE --actions consume"
        )
    topic = getattr(asked, "topic", None)
    if not isinstance(topic, str):
        return ""
    try:
        name = TopicName.parse(topic).parent.fqn
    except MagnetarError:
        return ""
    known = {c.CommandProducer: "produce", c.CommandSubscribe: "consume"}
    actions = known.get(type(asked), "ACTION, which is produce or consume")
    grant = f"; grant it with: pulsar-admin topics grant-permission {name} --role ROLE --actions {actions}"
    if not isinstance(asked, c.CommandSubscribe):
        return grant
    return (
        f"{grant}; if it has that, the subscription may be reserved for others: pulsar-admin namespaces "
        f"subscription-permission {TopicName.parse(name).namespace}"
    )
