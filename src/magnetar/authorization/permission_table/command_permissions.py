"""The permission table of the wire: what each command of a client needs, and how its refusal is answered.

Every command of :data:`magnetar.protocol.server.FROM_CLIENT` has a row; the broker refuses a command without one.
``docs/permissions.md`` and the tests of all commands with all roles are made from the rows.

Most commands act on what the client has opened: the row of the command that opened it says what that needed, and
nothing is asked again, so a message costs nothing (the broker asks again when grants change, rule 12.9). The others
name their object, and their row finds it: :attr:`CommandPermission.accesses` yields what the command asks for. Whatever
stands in a request beside its topic is asked for too: the initial subscription of a producer, every topic and
subscription that is added to a transaction. Transactions belong to who began them (rule 9.7); the coordinator checks
that.

A schema belongs to the topics of both domains (rule 10.2), so a new one takes the same permission on both.

Texts of refusals are Pulsar's (rule 12.8). Pulsar asks nothing for schemas and for topics of transactions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Protocol

from magnetar.authorization.access import Access, ClusterAccess, NamespaceAccess, TopicAccess
from magnetar.authorization.caller import Caller
from magnetar.authorization.decision import Decision
from magnetar.authorization.operations import NamespaceOperation, TopicOperation
from magnetar.model.errors import ServerError
from magnetar.model.names import NamespaceName, TopicName
from magnetar.model.schemas import SchemaType
from magnetar.protocol import commands as c

REFUSED: Final = ServerError.AuthorizationError
_NO_TENANT: Final = "org.apache.pulsar.common.util.RestException: HTTP 404 Not Found"
"""What Pulsar answers a producer or consumer of a tenant that does not exist."""
_PREFIX: Final = "org.apache.pulsar.broker.PulsarServerException: "
"""Before the text for a subscription whose name does not begin with the role (rule 12.7)."""


class Handles(Protocol):
    """What the client has opened."""

    def consumed(self, consumer_id: int) -> tuple[TopicName, str] | None:
        """Topic and subscription of an open consumer."""
        ...

    def sharing(self, topic: TopicName, schema: c.Schema | None, *, first: bool = False) -> TopicName | None:
        """The topic of the other domain that would get this schema as well (rule 10.2), if it exists.

        ``None`` if nothing would be registered. ``first``: a schema is registered only where there is none yet.
        """
        ...


Accesses = Callable[[Any, Handles], Iterable[Access]]
Refusal = Callable[[Any, Caller, Decision], c.Command]


@dataclass(frozen=True, slots=True)
class CommandPermission:
    """One row: what a command needs."""

    needs: str
    """In words, for docs/permissions.md."""
    accesses: Accesses | None = None
    """What one command asks for; ``None``: nothing more than what opened its handle did."""
    refused: Refusal | None = None
    """The answer to a refused command; ``None``: it is ignored, or there is none to refuse."""
    recorded: bool = False
    """Whether the audit log has it also when it is allowed: it changes or reads data of the topic."""
    inside: str = ""
    """What :attr:`accesses` asks for besides, in words, depending on what the broker knows."""


def _on_topic(operation: TopicOperation) -> Accesses:
    def accesses(command: Any, handles: Handles) -> Iterable[Access]:
        yield TopicAccess(TopicName.parse(command.topic), operation)

    return accesses


def _registers(command: Any, handles: Handles) -> Iterable[Access]:
    topic = TopicName.parse(command.topic)
    yield TopicAccess(topic, TopicOperation.PRODUCE)
    # here the type None says that there is none (rule 10.10)
    schema = None if command.schema is None or command.schema.type is SchemaType.NONE else command.schema
    yield from _of_both(handles.sharing(topic, schema), TopicOperation.PRODUCE)


def _of_both(namesake: TopicName | None, operation: TopicOperation) -> Iterable[Access]:
    """Ask the same on the topic whose schemas they are as well."""
    if namesake is not None:
        yield TopicAccess(namesake, operation)


def _on_consumer(operation: TopicOperation) -> Accesses:
    def accesses(command: Any, handles: Handles) -> Iterable[Access]:
        found = handles.consumed(command.consumer_id)
        if found is not None:
            yield TopicAccess(found[0], operation, found[1])

    return accesses


def _on_namespace(command: Any, handles: Handles) -> Iterable[Access]:
    yield NamespaceAccess(NamespaceName.parse(command.namespace), NamespaceOperation.GET_TOPICS)


def _producer(command: c.CommandProducer, handles: Handles) -> Iterable[Access]:
    topic = TopicName.parse(command.topic)
    yield TopicAccess(topic, TopicOperation.PRODUCE)
    yield from _of_both(handles.sharing(topic, command.schema), TopicOperation.PRODUCE)
    if command.initial_subscription_name:
        yield TopicAccess(topic, TopicOperation.SUBSCRIBE, command.initial_subscription_name)


def _subscribe(command: c.CommandSubscribe, handles: Handles) -> Iterable[Access]:
    topic = TopicName.parse(command.topic)
    yield TopicAccess(topic, TopicOperation.CONSUME, command.subscription)
    yield from _of_both(handles.sharing(topic, command.schema, first=True), TopicOperation.CONSUME)


def _partitions(command: c.CommandAddPartitionToTxn, handles: Handles) -> Iterable[Access]:
    for topic in [TopicName.parse(name) for name in command.partitions]:
        yield TopicAccess(topic, TopicOperation.PRODUCE)


def _subscriptions(command: c.CommandAddSubscriptionToTxn, handles: Handles) -> Iterable[Access]:
    for topic, subscription in [(TopicName.parse(one.topic), one.subscription) for one in command.subscriptions]:
        yield TopicAccess(topic, TopicOperation.CONSUME, subscription)


def _coordinators(command: Any, handles: Handles) -> Iterable[Access]:
    yield ClusterAccess("end transactions on topics, as coordinators of other brokers do")


# refusals --------------------------------------------------------------------------------------------------------


def _error(text: str, no_tenant: str = _NO_TENANT) -> Refusal:
    def refused(command: Any, caller: Caller, decision: Decision) -> c.Command:
        said = no_tenant if decision.missing else _PREFIX + decision.reason if decision.prefix_missing else text
        return c.CommandError(command.request_id, REFUSED, said)

    return refused


def _lookup(command: c.CommandLookupTopic, caller: Caller, decision: Decision) -> c.Command:
    text = (
        "Exception occurred while trying to authorize lookup"
        if decision.missing
        else "Client is not authorized to Lookup"
    )
    return c.CommandLookupTopicResponse(
        command.request_id, c.LookupType.Failed, error=REFUSED, message=text, authoritative=False
    )


def _metadata(command: c.CommandPartitionedTopicMetadata, caller: Caller, decision: Decision) -> c.Command:
    error, text = REFUSED, "Client is not authorized to Get Partition Metadata"
    if decision.missing:
        namespace = TopicName.parse(command.topic).namespace
        error, text = ServerError.TopicNotFound, f"Tenant or namespace or topic does not exist: {namespace}"
    return c.CommandPartitionedTopicMetadataResponse(
        command.request_id, c.MetadataType.Failed, error=error, message=text
    )


def _in(response: Callable[..., c.Command], text: str) -> Refusal:
    """The command's own answer, with the error in it."""
    return lambda command, caller, decision: response(command.request_id, REFUSED, text)


def _of_transaction(response: Callable[..., c.Command], text: str) -> Refusal:
    return lambda command, caller, decision: response(command.request_id, command.txn, REFUSED, text)


def _of_coordinator(response: Callable[..., c.Command], before: str = "") -> Refusal:
    def refused(command: Any, caller: Caller, decision: Decision) -> c.Command:
        text = (
            f"{before}TC client ({caller.original_role or caller.role}) is not a super user, and is not allowed to "
            f"operate on transaction ({command.txn.most},{command.txn.least})"
        )
        return response(command.request_id, command.txn, ServerError.TransactionNotFound, text)

    return refused


# the table -------------------------------------------------------------------------------------------------------

_BOTH: Final = "for a schema that is new, {} on the topic of the same name in the other domain, if there is one"
"""The two share their schemas (rule 10.2)."""
_PRODUCER: Final = CommandPermission("the producer that PRODUCER opened on this connection")
_CONSUMER: Final = CommandPermission("the consumer that SUBSCRIBE opened on this connection")
_LOOK_UP: Final = _on_topic(TopicOperation.LOOKUP)

COMMAND_PERMISSIONS: Final[Mapping[type, CommandPermission]] = MappingProxyType(
    {
        c.CommandLookupTopic: CommandPermission("LOOKUP on the topic", _LOOK_UP, _lookup),
        c.CommandPartitionedTopicMetadata: CommandPermission("LOOKUP on the topic", _LOOK_UP, _metadata),
        c.CommandGetTopicsOfNamespace: CommandPermission(
            "GET_TOPICS on the namespace",
            _on_namespace,
            _error(
                "Client is not authorized to GetTopicsOfNamespace",
                "Exception occurred while trying to authorize GetTopicsOfNamespace",
            ),
        ),
        c.CommandWatchTopicList: CommandPermission(
            "GET_TOPICS on the namespace",
            _on_namespace,
            _error(
                "Proxy Client is not authorized to watchTopicList",
                "Exception occurred while trying to handle command WatchTopicList",
            ),
        ),
        c.CommandWatchTopicListClose: CommandPermission("the watch that WATCH_TOPIC_LIST opened on this connection"),
        c.CommandGetSchema: CommandPermission(
            "GET_METADATA on the topic",
            _on_topic(TopicOperation.GET_METADATA),
            _in(c.CommandGetSchemaResponse, "Client is not authorized to get schema"),
        ),
        c.CommandGetOrCreateSchema: CommandPermission(
            "PRODUCE on the topic",
            _registers,
            _in(c.CommandGetOrCreateSchemaResponse, "Client is not authorized to get or create schema"),
            recorded=True,
            inside=_BOTH.format("PRODUCE"),
        ),
        c.CommandProducer: CommandPermission(
            "PRODUCE on the topic, and SUBSCRIBE on its initial subscription if it names one",
            _producer,
            _error("Client is not authorized to Produce"),
            recorded=True,
            inside=_BOTH.format("PRODUCE"),
        ),
        c.CommandSend: CommandPermission(
            "the producer that PRODUCER opened on this connection; a transaction of its own, if it names one"
        ),
        c.SendRun: CommandPermission("as SEND: it is many of these"),
        c.CommandCloseProducer: _PRODUCER,
        c.CommandSubscribe: CommandPermission(
            "CONSUME on the topic with the subscription",
            _subscribe,
            _error("Client is not authorized to subscribe"),
            recorded=True,
            inside=_BOTH.format("CONSUME"),
        ),
        c.CommandFlow: _CONSUMER,
        c.CommandAck: CommandPermission(
            "the consumer that SUBSCRIBE opened on this connection; a transaction of its own, if it names one"
        ),
        c.AckRun: CommandPermission("as ACK: it is many of these"),
        c.CommandRedeliverUnacknowledgedMessages: _CONSUMER,
        c.UnparsedCommand: CommandPermission("as ACK and REDELIVER_UNACKNOWLEDGED_MESSAGES: it is a long one of these"),
        c.CommandSeek: CommandPermission(
            "RESET_CURSOR on the topic with the subscription of the open consumer",
            _on_consumer(TopicOperation.RESET_CURSOR),
            _error("Client is not authorized to seek"),
            recorded=True,
        ),
        c.CommandUnsubscribe: CommandPermission(
            "UNSUBSCRIBE on the topic with the subscription of the open consumer",
            _on_consumer(TopicOperation.UNSUBSCRIBE),
            _error("Client is not authorized to unsubscribe"),
            recorded=True,
        ),
        c.CommandCloseConsumer: _CONSUMER,
        c.CommandGetLastMessageId: _CONSUMER,
        c.CommandConsumerStats: _CONSUMER,
        c.CommandTcClientConnectRequest: CommandPermission("a login"),
        c.CommandNewTxn: CommandPermission("a login; the transaction belongs to the role"),
        c.CommandAddPartitionToTxn: CommandPermission(
            "a transaction of its own, and PRODUCE on every topic in it",
            _partitions,
            _of_transaction(c.CommandAddPartitionToTxnResponse, "Client is not authorized to Produce"),
        ),
        c.CommandAddSubscriptionToTxn: CommandPermission(
            "a transaction of its own, and CONSUME on every topic in it with the subscription",
            _subscriptions,
            _of_transaction(c.CommandAddSubscriptionToTxnResponse, "Client is not authorized to subscribe"),
        ),
        c.CommandEndTxn: CommandPermission("a transaction of its own"),
        c.CommandEndTxnOnPartition: CommandPermission(
            "a superuser", _coordinators, _of_coordinator(c.CommandEndTxnOnPartitionResponse)
        ),
        c.CommandEndTxnOnSubscription: CommandPermission(
            "a superuser",
            _coordinators,
            _of_coordinator(c.CommandEndTxnOnSubscriptionResponse, "Handle end txn on subscription failed: "),
        ),
    }
)
