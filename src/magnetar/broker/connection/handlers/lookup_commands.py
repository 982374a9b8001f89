"""The questions about topics (rules of group 2)."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import Final

from magnetar.broker.connection.handlers.metadata_write import write_metadata
from magnetar.broker.connection.handlers.topic_list_answer import put_list
from magnetar.broker.connection.session import Session
from magnetar.broker.namespaces import lookup
from magnetar.broker.namespaces.topic_directory import DOMAINS
from magnetar.model.errors import MagnetarError, ProtocolError
from magnetar.model.names import Domain, NamespaceName, TopicName
from magnetar.protocol import commands as c
from magnetar.protocol.handmade_frames import topic_lists

log = logging.getLogger(__name__)

_DOMAINS: Final = MappingProxyType[c.NamespaceMode, Sequence[Domain]](
    {
        c.NamespaceMode.PERSISTENT: ("persistent",),
        c.NamespaceMode.NON_PERSISTENT: ("non-persistent",),
        c.NamespaceMode.ALL: DOMAINS,
    }
)


def look_up(session: Session, command: c.CommandLookupTopic) -> None:
    """Answer LOOKUP with this broker (rules 2.3, 2.6); it does not create the topic (rule 2.5)."""
    with session.service.activity.lookup():
        _look_up(session, command)


def _look_up(session: Session, command: c.CommandLookupTopic) -> None:
    service = session.service
    try:
        with service.lookups.one():
            name = TopicName.parse(command.topic)
            found = service.addresses(command.advertised_listener_name)
            lookup.require_namespace(service.resources, name)
    except MagnetarError as error:
        service.activity.lookup_failures += 1
        session.complain(error.code.name, "LOOKUP refused: %s", error)
        session.send(
            c.CommandLookupTopicResponse(
                command.request_id, c.LookupType.Failed, error=error.code, message=str(error), authoritative=False
            )
        )
        return
    session.send(
        c.CommandLookupTopicResponse(
            command.request_id,
            c.LookupType.Connect,
            broker_service_url=found.url or None,
            broker_service_url_tls=found.url_tls or None,
            authoritative=True,
            proxy_through_service_url=True,
        )
    )


def partitioned_metadata(session: Session, command: c.CommandPartitionedTopicMetadata) -> None:
    """Answer PARTITIONED_METADATA with the number of partitions (rules 2.7, 2.8)."""
    service = session.service

    def answer(count: int | None, error: MagnetarError | None) -> None:
        if error is None:
            session.send(c.CommandPartitionedTopicMetadataResponse(command.request_id, c.MetadataType.Success, count))
            return
        _refused(session, command, error)
        session.send(
            c.CommandPartitionedTopicMetadataResponse(
                command.request_id, c.MetadataType.Failed, error=error.code, message=str(error)
            )
        )

    try:
        name = TopicName.parse(command.topic)
        auto = service.policies.auto_topic_creation(name.namespace)
    except MagnetarError as error:
        answer(None, error)
        return
    count = lookup.partition_count(
        service.resources,
        auto,
        name,
        service.creation.room_for,
        exists=service.exists(name),
        may_create=command.metadata_auto_creation_enabled is not False,
    )
    write_metadata(session, service.lookups.answered(count), answer, "PARTITIONED_METADATA")


def _refused(session: Session, command: c.CommandPartitionedTopicMetadata, error: MagnetarError) -> None:
    """Log the refusal with its reason.

    Whether a topic exists is an ordinary question of a client that does not want it made: every Java consumer with a
    retry topic or a dead letter policy asks so for the topics that earlier versions of it had.
    """
    if isinstance(error, lookup.NoSuchTopicError) and command.metadata_auto_creation_enabled is False:
        text = "%s: PARTITIONED_METADATA of %.500s: %.4500s"
        log.debug(text, session.address, command.topic, error, extra=session.known)
    else:
        session.complain(error.code.name, "PARTITIONED_METADATA of %s refused: %s", command.topic, error)


def topics_of_namespace(session: Session, command: c.CommandGetTopicsOfNamespace) -> Iterator[int]:
    """Answer GET_TOPICS_OF_NAMESPACE (rules 2.16 to 2.18). A malformed namespace closes the connection (rule
    1.3.19)."""
    try:
        namespace = NamespaceName.parse(command.namespace)
    except MagnetarError as error:
        raise ProtocolError(str(error)) from error
    service = session.service
    pieces = service.directory.pieces(namespace, _DOMAINS[command.mode], system=False)
    # a look at a name takes about one unit
    found = yield from lookup.selecting(pieces, command.topics_pattern, command.topics_hash, service.settings)
    frame = topic_lists.topics_of_namespace(
        command.request_id, found.pieces, filtered=found.filtered, digest=found.hash, changed=found.changed
    )
    yield from put_list(session, command.request_id, frame)
