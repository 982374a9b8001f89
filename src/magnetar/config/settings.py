"""Every setting that has an effect in magnetar, under Apache Pulsar's own name and with its unit.

The class is the single list: :mod:`magnetar.config.configuration` fills it from files, environment and flags, and
``docs/settings.md`` is generated from the descriptions here. A setting of Pulsar's that is missing here is accepted
and has no effect yet; a misspelt name is refused. Defaults are Pulsar's own, except where the description says
otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from magnetar.config.authentication_settings import AuthenticationSettings
from magnetar.config.authorization_settings import AuthorizationSettings
from magnetar.config.metrics_settings import MetricsSettings
from magnetar.config.policy_settings import PolicySettings
from magnetar.config.setting_field import INT_MAX as _INT_MAX
from magnetar.config.setting_field import setting as _setting
from magnetar.config.tls_settings import TlsSettings
from magnetar.model.policies import PARTITIONS_MAX

_PORT_MAX: Final = 65_535


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(PolicySettings, AuthenticationSettings, AuthorizationSettings, TlsSettings, MetricsSettings):
    """All settings, immutable for the life of the process; tests build one with the values they need."""

    # identity and addresses
    clusterName: str = _setting(
        "standalone",
        "Name of the cluster, as clients and the REST interface see it. Pulsar has no default.",
        "Server",
        form="name",
    )
    brokerServicePort: int | None = _setting(
        6650, "TCP port of the binary protocol without TLS; 0 lets the system choose one.", "Server", 0, _PORT_MAX,
        off=True,
    )  # fmt: skip
    webServicePort: int | None = _setting(
        8080, "TCP port of the REST interface without TLS; 0 lets the system choose one.", "Server", 0, _PORT_MAX,
        off=True,
    )  # fmt: skip
    statusFilePath: str = _setting(
        "",
        "A file: while it exists, `/status.html` answers OK, otherwise 404. A load balancer that asks there sends no "
        "more clients when an operator removes it.",
        "Server",
    )
    bindAddress: str = _setting(
        "127.0.0.1",
        "Address both ports are bound to. Pulsar binds to 0.0.0.0; here others reach the broker only when asked for, "
        "because without `authenticationEnabled` it serves everybody.",
        "Server",
        form="host",
    )
    advertisedAddress: str = _setting(
        "",
        "Host that lookups answer; empty: `bindAddress`, or localhost if that is 0.0.0.0 or ::.",
        "Server",
        form="host",
    )
    advertisedListeners: str = _setting(
        "",
        "Addresses for clients of several networks, as `name:scheme://host:port` entries separated by commas; the "
        "schemes are pulsar, pulsar+ssl, http and https. A client names its listener when it looks a topic up.",
        "Server",
    )
    internalListenerName: str = _setting(
        "",
        "The listener whose addresses a client gets that names none; empty: the first of `advertisedListeners`.",
        "Server",
    )
    webServiceAllowedHosts: str = _setting(
        "",
        "magnetar's own: further host names, separated by commas, under which the REST interface may be asked; `*`: "
        "under any. IP addresses, localhost and `advertisedAddress` always work; unless bound to the loopback, so do "
        "names without a dot, under .local, .internal or .svc, and the machine's own. Other names are refused: a web "
        "page could have made them up (docs/decisions/021-the-http-door.md).",
        "Server",
        form="hosts",
    )
    maxMessageSize: int = _setting(
        5_242_880,
        "Bytes of the largest message; sent to clients on connect. A frame may be 10 KiB larger.",
        "Server",
        1,
        2_147_473_407,
    )
    keepAliveIntervalSeconds: int = _setting(
        30,
        "A connection that was silent for so long gets a PING, and is closed if silent again.",
        "Server",
        1,
        _INT_MAX,
    )
    connectionLivenessCheckTimeoutMillis: int = _setting(
        5000,
        "Milliseconds in which a connection that holds what another client wants (a producer's name, the place of an "
        "Exclusive consumer, a hash range of a Key_Shared one) has to answer a PING before it is closed; 0 or less: it "
        "is not asked, and the other one is refused.",
        "Server",
        -1,
        _INT_MAX,
    )
    brokerMaxConnections: int = _setting(
        0,
        "Most connections of clients; 0: as many as there are file descriptors (`ulimit -n`, raised to its hard limit "
        "at the start) beside those that the disk needs. Who is one too many hears why.",
        "Server",
        0,
        _INT_MAX,
    )
    brokerMaxConnectionsPerIp: int = _setting(
        0, "Most connections of clients from one address; 0 without limit.", "Server", 0, _INT_MAX
    )
    maxHttpServerConnections: int = _setting(
        2048,
        "Most HTTP connections; never more than half of the file descriptors that are left for connections. "
        "0 without another limit.",
        "Server",
        0,
        _INT_MAX,
    )
    webSocketServiceEnabled: bool = _setting(
        True, "Whether the web ports serve producers, consumers and readers over WebSocket. Pulsar's standalone does.",
        "WebSocket",
    )  # fmt: skip
    webSocketMaxTextFrameSize: int = _setting(
        1 << 20, "Bytes of the largest message that a WebSocket may send.", "WebSocket", 1024, 64 << 20
    )
    webSocketSessionIdleTimeoutMillis: int = _setting(
        300_000, "Milliseconds after which a WebSocket is closed that nothing went through.", "WebSocket", 1, _INT_MAX
    )
    webSocketPingDurationSeconds: int = _setting(
        -1, "Seconds between two pings to each WebSocket; 0 or less: none.", "WebSocket", -1, _INT_MAX
    )
    pulsarChannelPauseReceivingRequestsIfUnwritable: bool = _setting(
        True,
        "While a client does not take what it was sent, its commands wait, except those without an answer. Pulsar's "
        "default is false: then the answers pile up in memory.",
        "Server",
    )
    pulsarChannelWriteBufferHighWaterMark: int = _setting(
        2 << 20,
        "Bytes that wait for one client above which it is given nothing more. Pulsar has 65536.",
        "Server",
        1024,
        _INT_MAX,
    )
    pulsarChannelWriteBufferLowWaterMark: int = _setting(
        512 << 10, "Bytes at which it goes on, at most as many as the other. Pulsar has 32768.", "Server", 0, _INT_MAX
    )
    maxPendingPublishRequestsPerConnection: int = _setting(
        1000,
        "Messages of one connection that may wait for the disk; at the limit we stop reading from its socket, "
        "and go on at half of it. 0: no limit but `maxMessagePublishBufferSizeInMB`.",
        "Server",
        0,
        _INT_MAX,
    )
    maxMessagePublishBufferSizeInMB: int = _setting(
        64,
        "MB of messages of all connections that may wait for the disk; above it we stop reading from those who send; "
        "-1 without limit. Pulsar's default is half of the direct memory.",
        "Server",
        -1,
        1 << 20,
    )
    maxConcurrentNonPersistentMessagePerConnection: int = _setting(
        1000,
        "Messages of one connection that may be on their way through non-persistent topics; more are dropped.",
        "Server",
        0,
        _INT_MAX,
    )
    maxConcurrentLookupRequest: int = _setting(
        50_000, "Lookups and questions for partitions that may be under way; more are refused.", "Server", 0, _INT_MAX
    )
    maxConsumerMetadataSize: int = _setting(
        1024, "Characters of the metadata that a consumer brings along; 0 without limit.", "Server", 0, _INT_MAX
    )
    enableNonPersistentTopics: bool = _setting(True, "Whether clients may use non-persistent topics.", "Server")
    subscriptionPatternMaxLength: int = _setting(
        50, "Characters of the longest topic pattern that the broker itself applies.", "Server", 0, _INT_MAX
    )
    enableBrokerSideSubscriptionPatternEvaluation: bool = _setting(
        True, "Whether the broker filters topic lists by the client's pattern.", "Server"
    )

    # durability and disk
    journalSyncData: bool = _setting(
        True,
        "Answer a publish only when it is on disk (fsync). `false` answers after the write to the operating system: "
        "a crash of the machine may lose acknowledged messages. Apache Pulsar's standalone.conf says false.",
        "Storage",
    )
    managedLedgerMaxEntriesPerLedger: int = _setting(
        50_000, "Entries after which a topic begins a new ledger.", "Storage", 1, _INT_MAX
    )
    managedLedgerMaxSizePerLedgerMbytes: int = _setting(
        2048, "MiB after which a topic begins a new ledger.", "Storage", 1, _INT_MAX
    )
    managedLedgerMinLedgerRolloverTimeMinutes: int = _setting(
        10, "A ledger younger than this is kept open even if it is full.", "Storage", 0, _INT_MAX
    )
    managedLedgerMaxLedgerRolloverTimeMinutes: int = _setting(
        240, "A ledger older than this is closed at the next write.", "Storage", 1, _INT_MAX
    )
    managedLedgerCacheSizeMB: int = _setting(
        40,
        "MiB of entries kept in memory for all topics: what was written a moment ago, what subscriptions wait for, and "
        "what was read ahead. Pulsar computes it from direct memory.",
        "Storage",
        0,
        1 << 20,
    )

    spaceReclaimBytesPerSecond: int = _setting(
        16 << 20,
        "magnetar's own: bytes per second that are moved at most to free disk space that mostly dead segments hold; "
        "as many as clients write besides, if the directory is more than twice as large as what it needs. 0: nothing "
        "is moved, and one old message can keep 128 MB.",
        "Storage",
        0,
        _INT_MAX,
    )
    offloadUrl: str = _setting(
        "",
        "magnetar's own: where offloaded ledgers go, `file:///path`, `s3://bucket/prefix`, `gs://...` or `az://...`; "
        "empty: nothing is offloaded. A directory is made if it is missing; one that cannot be written refuses the "
        "start. What was offloaded before is read from where it is.",
        "Storage",
    )
    backupDirectory: str = _setting(
        "",
        "magnetar's own: directory below which the running broker writes backups that a superuser asks for "
        "(docs/backup.md), best on another disk; it must exist. Empty: it writes none.",
        "Storage",
    )

    # topics
    maxNumPartitionsPerPartitionedTopic: int = _setting(
        0, f"Most partitions a topic may be given; 0: {PARTITIONS_MAX}, which is never exceeded.", "Topics", 0, _INT_MAX
    )
    brokerDeduplicationMaxNumberOfProducers: int = _setting(
        10_000,
        "Producers of a topic with deduplication whose sequence ids are remembered while they are not connected; "
        "those that published last stay.",
        "Topics",
        0,
        _INT_MAX,
    )
    brokerDeduplicationProducerInactivityTimeoutMinutes: int = _setting(
        360, "A producer that was not connected for so long is forgotten by deduplication.", "Topics", 1, _INT_MAX
    )
    brokerDeduplicationStreamInactivityTimeoutMinutes: int = _setting(
        20_160,
        "magnetar's own: the same for producers of streaming queries, whose names begin with `spark.`: 14 days. There "
        "may be `brokerDeduplicationMaxNumberOfProducers` of them beside the others.",
        "Topics",
        1,
        _INT_MAX,
    )
    maxSameAddressProducersPerTopic: int = _setting(
        0, "Most producers of a topic from one address; 0 without limit.", "Topics", 0, _INT_MAX
    )
    maxTenants: int = _setting(0, "Most tenants; 0 without limit.", "Topics", 0, _INT_MAX)
    maxNamespacesPerTenant: int = _setting(0, "Most namespaces of a tenant; 0 without limit.", "Topics", 0, _INT_MAX)
    defaultNumberOfNamespaceBundles: int = _setting(
        4, "Bundles of a new namespace. All are served here; tools like to see them.", "Topics", 1, 0x10000
    )
    forceDeleteTenantAllowed: bool = _setting(False, "Whether DELETE of a tenant may be forced.", "Topics")
    forceDeleteNamespaceAllowed: bool = _setting(False, "Whether DELETE of a namespace may be forced.", "Topics")

    # delivery
    acknowledgmentAtBatchIndexLevelEnabled: bool = _setting(
        False, "Whether single messages of a batch are acknowledged on the broker.", "Delivery"
    )
    transactionCoordinatorEnabled: bool = _setting(
        False,
        "Whether clients may open transactions. Those that are open when this is switched off time out.",
        "Transactions",
    )
    maxActiveTransactionsPerCoordinator: int = _setting(
        0,
        "Open transactions of the coordinator; more are not answered, so their client gives up. 0: 50,000, of which a "
        "role has at most as many as are left for others; more are refused.",
        "Transactions",
        0,
        _INT_MAX,
    )
    subscriptionKeySharedEnable: bool = _setting(True, "Whether Key_Shared subscriptions are accepted.", "Delivery")
    subscriptionKeySharedUseConsistentHashing: bool = _setting(
        True, "Key_Shared spreads keys by a consistent-hash ring (true) or by splitting ranges (false).", "Delivery"
    )
    subscriptionKeySharedConsistentHashingReplicaPoints: int = _setting(
        100, "Points of each consumer on that ring.", "Delivery", 1, 65_535
    )
    keySharedLookAheadMsgInReplayThresholdPerConsumer: int = _setting(
        2000,
        "Messages put aside per consumer before Key_Shared stops reading ahead; 0 without limit.",
        "Delivery",
        0,
        _INT_MAX,
    )
    keySharedLookAheadMsgInReplayThresholdPerSubscription: int = _setting(
        20_000,
        "The same for the whole subscription; 0 without limit. With both 0, as many as may be unacknowledged.",
        "Delivery",
        0,
        _INT_MAX,
    )
    activeConsumerFailoverDelayTimeMillis: int = _setting(
        1000, "Failover: milliseconds a new active consumer waits before it is given messages.", "Delivery", 0, _INT_MAX
    )
    activeConsumerFailoverConsistentHashing: bool = _setting(
        False, "Failover: choose the active consumer of a partition by a hash ring.", "Delivery"
    )
    dispatcherMaxReadBatchSize: int = _setting(
        100, "Entries read from a topic at one time for a subscription.", "Delivery", 1, _INT_MAX
    )
    dispatcherMaxReadSizeBytes: int = _setting(
        5_242_880, "Bytes read from a topic at one time for a subscription.", "Delivery", 1, _INT_MAX
    )
    dispatcherMaxRoundRobinBatchSize: int = _setting(
        20, "Shared: entries given to one consumer before it is the next one's turn.", "Delivery", 1, _INT_MAX
    )
    autoSkipNonRecoverableData: bool = _setting(
        False,
        "Whether subscriptions skip messages that are damaged on disk. If not, each waits before them until they "
        "are skipped (REST: skipUnreadable) or the disk is repaired.",
        "Delivery",
    )
    isDelayedDeliveryDeliverAtTimeStrict: bool = _setting(
        False,
        "Whether a delayed message never goes out early. If not, it may be one tick early, and more of them go out "
        "together.",
        "Delivery",
    )

    livenessCheckSeconds: int = _setting(
        30,
        "magnetar's own: a subscription that has a backlog and a consumer that could take it, and does nothing for so "
        "many seconds, is logged, healed and counted (magnetar_subscriptions_stuck_total); 0 switches that off.",
        "Delivery",
        0,
        86_400,
    )

    maxUnackedMessagesPerBroker: int = _setting(
        0,
        "Unacknowledged messages of all Shared and Key_Shared subscriptions at which those with many get no more until "
        "there are half as many; 0 without limit.",
        "Delivery",
        0,
        _INT_MAX,
    )
    maxUnackedMessagesPerSubscriptionOnBrokerBlocked: float = _setting(
        0.16,
        "The part of `maxUnackedMessagesPerBroker` that a subscription may have meanwhile; 0 switches that limit off.",
        "Delivery",
        0,
        1,
    )
    exposingBrokerEntryMetadataToClientEnabled: bool = _setting(
        False,
        "Whether clients that can read it get the message index, as far as `brokerEntryMetadataInterceptors` has the "
        "broker keep it.",
        "Delivery",
    )
    brokerEntryMetadataInterceptors: str = _setting(
        "",
        "What the broker keeps of each entry beside it: the message index, by Pulsar's name for it. The time at which "
        "an entry came is not kept (docs/decisions/075-the-message-index.md).",
        "Delivery",
        members=("org.apache.pulsar.common.intercept.AppendIndexMetadataInterceptor",),
    )

    @property
    def keeps_message_index(self) -> bool:
        """Whether messages are numbered for clients and REST."""
        return bool(self.brokerEntryMetadataInterceptors)

    @property
    def publish_buffer_bytes(self) -> int:
        """``maxMessagePublishBufferSizeInMB`` in bytes; without a limit more than there ever are."""
        megabytes = self.maxMessagePublishBufferSizeInMB
        return megabytes << 20 if megabytes > 0 else 1 << 62

    @property
    def advertised_host(self) -> str:
        """The host part of the addresses that lookups answer with."""
        if self.advertisedAddress:
            return self.advertisedAddress
        return "localhost" if self.bindAddress in ("0.0.0.0", "::", "") else self.bindAddress
