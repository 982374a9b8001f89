import static org.mockito.Mockito.mock;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.apache.bookkeeper.mledger.ManagedCursor;
import org.apache.bookkeeper.mledger.ManagedLedger;
import org.apache.bookkeeper.mledger.Position;
import org.apache.bookkeeper.mledger.PositionFactory;
import org.apache.bookkeeper.mledger.impl.ManagedCursorContainer;
import org.apache.bookkeeper.mledger.impl.ManagedLedgerImpl;
import org.apache.pulsar.broker.service.GetStatsOptions;
import org.apache.pulsar.broker.service.Producer;
import org.apache.pulsar.broker.service.Subscription;
import org.apache.pulsar.broker.service.Topic;
import org.apache.pulsar.broker.service.nonpersistent.NonPersistentTopic;
import org.apache.pulsar.broker.service.persistent.PersistentTopic;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.client.admin.PulsarAdminException;
import org.apache.pulsar.common.api.proto.ProducerAccessMode;
import org.apache.pulsar.common.naming.SystemTopicNames;
import org.apache.pulsar.common.naming.TopicName;
import org.apache.pulsar.common.policies.data.PersistentTopicInternalStats;
import org.apache.pulsar.common.policies.data.PublisherStats;
import org.apache.pulsar.common.policies.data.stats.TopicStatsImpl;
import org.apache.pulsar.compaction.Compactor;

/** A topic of a process with its ledger and its producers, as its REST interface shows them. */
class MirroredTopic {
    private final BrokerProcess broker;
    final TopicName name;

    MirroredTopic(BrokerProcess broker, TopicName name) {
        this.broker = broker;
        this.name = name;
    }

    /** Of the process that has the topic now: a test may keep what it had of its broker before it started it again. */
    PulsarAdmin admin() {
        return (broker.alive() ? broker : StandIn.living()).admin();
    }

    Topic topic() {
        Class<? extends Topic> kind = name.isPersistent() ? PersistentTopic.class : NonPersistentTopic.class;
        return mock(kind, call -> {
            switch (call.getMethod().getName()) {
                case "getName":
                    return name.toString();
                case "isPersistent":
                    return name.isPersistent();
                case "isSystemTopic":
                    return SystemTopicNames.isSystemTopic(name);
                case "getSubscription":
                    return new MirroredSubscription(this, call.getArgument(0)).subscription();
                case "getSubscriptions":
                    return subscriptions();
                case "getProducers":
                    return producers();
                case "getStats":
                    return stats(call.getArguments());
                case "asyncGetStats":
                    return CompletableFuture.completedFuture(stats(call.getArguments()));
                case "getInternalStats":
                    return CompletableFuture.completedFuture(internalStats());
                case "getBacklogSize":
                    return stats().getBacklogSize();
                case "getManagedLedger":
                    return ledger();
                case "getLastPosition":
                    return position(internalStats().lastConfirmedEntry);
                case "isDeduplicationEnabled":
                    return admin().topicPolicies().getDeduplicationStatus(name.toString(), true);
                case "getHierarchyTopicPolicies":
                    return MirroredPolicies.applied(admin(), name);
                case "getBacklogQuota":
                    return MirroredPolicies.quota(admin(), name, call.getArgument(0));
                case "getInactiveTopicPolicies":
                    return admin().topicPolicies().getInactiveTopicPolicies(name.toString(), true);
                case "checkMessageExpiry":
                    expire();
                    return null;
                case "triggerCompaction":
                    admin().topics().triggerCompaction(name.toString());
                    return null;
                case "compactionStatus":
                    return admin().topics().compactionStatus(name.toString());
                case "close":
                    Inside.skip("which topics are loaded"); // most tests do not ask afterwards
                    return admin().topics().unloadAsync(name.toString());
                default:
                    return Inside.of(call);
            }
        });
    }

    /** Has the process expire what is older than the time to live that applies, where it applies. */
    void expire() throws PulsarAdminException {
        Integer seconds = admin().topicPolicies().getMessageTTL(name.getPartitionedTopicName(), true);
        if (seconds == null || seconds <= 0) {
            return;
        }
        for (String subscription : stats().getSubscriptions().keySet()) {
            if (!subscription.equals(Compactor.COMPACTION_SUBSCRIPTION)
                    && !broker.conf.getAdditionalSystemCursorNames().contains(subscription)) {
                admin().topics().expireMessages(name.toString(), subscription, seconds);
            }
        }
    }

    TopicStatsImpl stats() throws PulsarAdminException {
        return stats(new Object[] {true, false, false});
    }

    private TopicStatsImpl stats(Object[] arguments) throws PulsarAdminException {
        boolean[] parts = arguments[0] instanceof GetStatsOptions
                ? parts((GetStatsOptions) arguments[0])
                : new boolean[] {(Boolean) arguments[0], (Boolean) arguments[1], (Boolean) arguments[2]};
        return (TopicStatsImpl) admin().topics().getStats(name.toString(), parts[0], parts[1], parts[2]);
    }

    private static boolean[] parts(GetStatsOptions options) {
        return new boolean[] {options.isGetPreciseBacklog(), options.isSubscriptionBacklogSize(), options.isGetEarliestTimeInBacklog()};
    }

    PersistentTopicInternalStats internalStats() throws PulsarAdminException {
        return admin().topics().getInternalStats(name.toString());
    }

    private Map<String, Subscription> subscriptions() throws PulsarAdminException {
        Map<String, Subscription> found = new LinkedHashMap<>();
        for (String subscription : stats().getSubscriptions().keySet()) {
            found.put(subscription, new MirroredSubscription(this, subscription).subscription());
        }
        return found;
    }

    private Map<String, Producer> producers() throws PulsarAdminException {
        Map<String, Producer> found = new LinkedHashMap<>();
        for (PublisherStats producer : stats().getPublishers()) {
            found.put(producer.getProducerName(), producer(producer));
        }
        return found;
    }

    private static Producer producer(PublisherStats stats) {
        return mock(Producer.class, call -> {
            switch (call.getMethod().getName()) {
                case "getProducerName":
                    return stats.getProducerName();
                case "getProducerId":
                    return stats.getProducerId();
                case "getAccessMode":
                    return ProducerAccessMode.valueOf(stats.getAccessMode().name());
                case "getMetadata":
                    return stats.getMetadata();
                case "getStats":
                    return stats;
                default:
                    return Inside.of(call);
            }
        });
    }

    private ManagedLedger ledger() {
        return mock(ManagedLedgerImpl.class, call -> {
            switch (call.getMethod().getName()) {
                case "getName":
                    return name.getPersistenceNamingEncoding();
                case "getNumberOfEntries":
                    return call.getArguments().length == 0 ? internalStats().numberOfEntries : Inside.of(call);
                case "getTotalSize":
                    return internalStats().totalSize;
                case "getLastConfirmedEntry":
                    return position(internalStats().lastConfirmedEntry);
                case "getConfig":
                    return MirroredPolicies.ledger(admin(), name);
                case "isTerminated":
                    return "Terminated".equals(internalStats().state);
                case "getCursors":
                    ManagedCursorContainer cursors = new ManagedCursorContainer();
                    for (String subscription : internalStats().cursors.keySet()) {
                        ManagedCursor cursor = new MirroredSubscription(this, subscription).cursor();
                        cursors.add(cursor, cursor.getMarkDeletedPosition());
                    }
                    return cursors;
                default:
                    return Inside.of(call);
            }
        });
    }

    static Position position(String text) {
        String[] parts = text.split(":");
        return PositionFactory.create(Long.parseLong(parts[0]), Long.parseLong(parts[1]));
    }
}
