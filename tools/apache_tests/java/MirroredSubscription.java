import static org.mockito.Mockito.mock;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.bookkeeper.mledger.ManagedCursor;
import org.apache.bookkeeper.mledger.impl.ManagedCursorImpl;
import org.apache.pulsar.broker.service.Consumer;
import org.apache.pulsar.broker.service.Dispatcher;
import org.apache.pulsar.broker.service.Subscription;
import org.apache.pulsar.broker.service.nonpersistent.NonPersistentDispatcherMultipleConsumers;
import org.apache.pulsar.broker.service.nonpersistent.NonPersistentDispatcherSingleActiveConsumer;
import org.apache.pulsar.broker.service.nonpersistent.NonPersistentStickyKeyDispatcherMultipleConsumers;
import org.apache.pulsar.broker.service.nonpersistent.NonPersistentSubscription;
import org.apache.pulsar.broker.service.persistent.PersistentDispatcherMultipleConsumers;
import org.apache.pulsar.broker.service.persistent.PersistentDispatcherSingleActiveConsumer;
import org.apache.pulsar.broker.service.persistent.PersistentStickyKeyDispatcherMultipleConsumers;
import org.apache.pulsar.broker.service.persistent.PersistentSubscription;
import org.apache.pulsar.client.admin.PulsarAdminException;
import org.apache.pulsar.common.api.proto.CommandSubscribe.SubType;
import org.apache.pulsar.common.policies.data.ConsumerStats;
import org.apache.pulsar.common.policies.data.ManagedLedgerInternalStats.CursorStats;
import org.apache.pulsar.common.policies.data.stats.ConsumerStatsImpl;
import org.apache.pulsar.common.policies.data.stats.SubscriptionStatsImpl;

/** A subscription of a process with its cursor and its consumers, as its REST interface shows them. */
class MirroredSubscription {
    private final MirroredTopic topic;
    private final String name;

    MirroredSubscription(MirroredTopic topic, String name) {
        this.topic = topic;
        this.name = name;
    }

    /** The subscription, or null if the topic has none of this name. */
    Subscription subscription() throws PulsarAdminException {
        if (stats() == null) {
            return null;
        }
        boolean persistent = topic.name.isPersistent();
        Class<? extends Subscription> kind = persistent ? PersistentSubscription.class : NonPersistentSubscription.class;
        return mock(kind, call -> {
            switch (call.getMethod().getName()) {
                case "getName":
                    return name;
                case "getTopicName":
                    return topic.name.toString();
                case "getTopic":
                    return topic.topic();
                case "getType":
                    return type().isEmpty() ? null : SubType.valueOf(type());
                case "getTypeString":
                    return type().isEmpty() ? "None" : type();
                case "getNumberOfEntriesInBacklog":
                    return stats() == null ? 0L : stats().getMsgBacklog();
                case "getNumberOfEntriesDelayed":
                    return stats().getMsgDelayed();
                case "getConsumers":
                    return consumers();
                case "isReplicated":
                    return stats().isReplicated();
                case "getSubscriptionProperties":
                    return stats().getSubscriptionProperties();
                case "getDispatcher":
                    return type().isEmpty() ? null : dispatcher();
                case "getCursor":
                    return persistent ? cursor() : Inside.of(call);
                case "clearBacklog":
                    topic.admin().topics().skipAllMessages(topic.name.toString(), name);
                    return CompletableFuture.completedFuture(null);
                default:
                    return Inside.of(call);
            }
        });
    }

    private SubscriptionStatsImpl stats() throws PulsarAdminException {
        return (SubscriptionStatsImpl) topic.stats().getSubscriptions().get(name);
    }

    private String type() throws PulsarAdminException {
        SubscriptionStatsImpl stats = stats();
        return stats == null || stats.getType() == null ? "" : stats.getType();
    }

    private List<Consumer> consumers() throws PulsarAdminException {
        List<Consumer> found = new ArrayList<>();
        for (ConsumerStats consumer : stats().getConsumers()) {
            found.add(consumer(consumer.getConsumerName()));
        }
        return found;
    }

    private Consumer consumer(String consumer) {
        return mock(Consumer.class, call -> {
            if (call.getMethod().getName().equals("consumerName")) {
                return consumer;
            }
            ConsumerStatsImpl found = (ConsumerStatsImpl) stats().getConsumers().stream()
                    .filter(stats -> stats.getConsumerName().equals(consumer)).findFirst().orElse(null);
            if (found == null) {
                throw Inside.skip("a consumer that has gone");
            }
            switch (call.getMethod().getName()) {
                case "getUnackedMessages":
                    return found.getUnackedMessages();
                case "getAvailablePermits":
                    return found.getAvailablePermits();
                case "isBlocked":
                    return found.isBlockedConsumerOnUnackedMsgs();
                case "getStats":
                    return found;
                case "getMetadata":
                    return found.getMetadata();
                default:
                    return Inside.of(call);
            }
        });
    }

    private Dispatcher dispatcher() throws PulsarAdminException {
        return mock(kindOfDispatcher(), call -> {
            switch (call.getMethod().getName()) {
                case "isConsumerConnected":
                    return !stats().getConsumers().isEmpty();
                case "getConsumers":
                    return new CopyOnWriteArrayList<>(consumers());
                case "getType":
                    return SubType.valueOf(type());
                case "getSelector":
                    return selector();
                case "getConsumerKeyHashRanges":
                    return selector().getConsumerKeyHashRanges();
                case "isAllowOutOfOrderDelivery":
                    return stats().isAllowOutOfOrderDelivery();
                case "getNumberOfDelayedMessages":
                    return stats().getMsgDelayed();
                case "getActiveConsumer":
                    String active = stats().getActiveConsumerName();
                    return active == null || active.isEmpty() ? null : consumer(active);
                default:
                    return Inside.of(call);
            }
        });
    }

    private MirroredSelector selector() throws PulsarAdminException {
        boolean sticky = "STICKY".equals(stats().getKeySharedMode());
        return new MirroredSelector(() -> stats().consumers, sticky, this::consumer);
    }

    private Class<? extends Dispatcher> kindOfDispatcher() throws PulsarAdminException {
        boolean single = type().equals("Exclusive") || type().equals("Failover");
        boolean byKey = type().equals("Key_Shared");
        if (!topic.name.isPersistent()) {
            return single ? NonPersistentDispatcherSingleActiveConsumer.class
                    : byKey ? NonPersistentStickyKeyDispatcherMultipleConsumers.class : NonPersistentDispatcherMultipleConsumers.class;
        }
        return single ? PersistentDispatcherSingleActiveConsumer.class
                : byKey ? PersistentStickyKeyDispatcherMultipleConsumers.class : PersistentDispatcherMultipleConsumers.class;
    }

    ManagedCursor cursor() {
        return mock(ManagedCursorImpl.class, call -> {
            CursorStats found = topic.internalStats().cursors.get(name);
            switch (call.getMethod().getName()) {
                case "getName":
                    return name;
                case "getMarkDeletedPosition":
                    return MirroredTopic.position(found.markDeletePosition);
                case "getReadPosition":
                    return MirroredTopic.position(found.readPosition);
                case "getNumberOfEntriesInBacklog":
                    return stats().getMsgBacklog();
                case "getTotalNonContiguousDeletedMessagesRange":
                    return found.totalNonContiguousDeletedMessagesRange;
                case "isDurable":
                    return stats().isDurable();
                case "getProperties":
                    return found.properties;
                default:
                    return Inside.of(call);
            }
        });
    }
}
