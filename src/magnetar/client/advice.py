"""What to do about a refused login or a missing grant, in the words of who asked."""

from __future__ import annotations

from magnetar.model.errors import MagnetarError, ServerError
from magnetar.model.names import TopicName
from magnetar.protocol import commands as c
from magnetar.security.asker_words import TOOL_WORDS, AskerWords
from magnetar.security.credentials.method import ClientCredentials


def advice(
    error: ServerError, asked: c.Command | None, credentials: ClientCredentials, words: AskerWords = TOOL_WORDS
) -> str | None:
    """Return the next step after an error about who we are or what we may do; None for other errors."""
    if error is ServerError.AuthenticationError:
        if credentials.method is None:
            return f"this client shows no credentials: give {words.login}"
        return f"this client shows {credentials}; has it expired, and is it meant for this broker?"
    if error is ServerError.AuthorizationError:
        return f"what this client may do follows from {credentials}{_grant(asked)}"
    return None


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
    actions = "produce" if isinstance(asked, c.CommandProducer) else "consume"
    return f"; grant it with: pulsar-admin topics grant-permission {name} --role ROLE --actions {actions}"
