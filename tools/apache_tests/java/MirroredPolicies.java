import static org.mockito.Mockito.mock;

import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.bookkeeper.mledger.ManagedLedgerConfig;
import org.apache.pulsar.broker.service.TopicPoliciesService;
import org.apache.pulsar.broker.service.TopicPoliciesService.GetType;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.client.admin.PulsarAdminException;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.common.events.ActionType;
import org.apache.pulsar.common.events.PulsarEvent;
import org.apache.pulsar.common.naming.SystemTopicNames;
import org.apache.pulsar.common.naming.TopicName;
import org.apache.pulsar.common.policies.data.BacklogQuota;
import org.apache.pulsar.common.policies.data.BacklogQuota.BacklogQuotaType;
import org.apache.pulsar.common.policies.data.HierarchyTopicPolicies;
import org.apache.pulsar.common.policies.data.PersistencePolicies;
import org.apache.pulsar.common.policies.data.RetentionPolicies;
import org.apache.pulsar.common.policies.data.TopicPolicies;

/** The policies of topics, as the process publishes them on `__change_events`, and as its REST interface says they apply. */
class MirroredPolicies {
    private static final int EVENT_S_MAX = 10;

    static TopicPoliciesService service(BrokerProcess broker) {
        return mock(TopicPoliciesService.class, call -> call.getMethod().getName().equals("getTopicPoliciesAsync")
                ? CompletableFuture.completedFuture(published(broker, call.getArgument(0), call.<GetType>getArgument(1) == GetType.GLOBAL_ONLY))
                : Inside.of(call));
    }

    /** What was last said of a topic on the events of its namespace. */
    private static Optional<TopicPolicies> published(BrokerProcess broker, TopicName name, boolean global) throws Exception {
        TopicName topic = TopicName.get(name.getPartitionedTopicName());
        String events = "persistent://" + topic.getNamespace() + "/" + SystemTopicNames.NAMESPACE_EVENTS_LOCAL_NAME;
        if (!broker.admin().topics().getList(topic.getNamespace()).stream().anyMatch(found -> found.startsWith(events))) {
            return Optional.empty();
        }
        Optional<TopicPolicies> last = Optional.empty();
        try (Reader<PulsarEvent> reader = broker.client().newReader(Schema.AVRO(PulsarEvent.class)).topic(events)
                .startMessageId(MessageId.earliest).create()) {
            while (reader.hasMessageAvailable()) {
                Message<PulsarEvent> message = reader.readNext(EVENT_S_MAX, TimeUnit.SECONDS);
                if (message == null) {
                    throw new PulsarClientException("no event within " + EVENT_S_MAX + " s");
                }
                if (!TopicPoliciesService.unwrapEventKey(message.getKey()).equals(topic)
                        || message.getKey().startsWith(TopicPoliciesService.GLOBAL_POLICIES_MSG_KEY_PREFIX) != global) {
                    continue;
                }
                PulsarEvent event = message.getValue();
                last = event == null || event.getActionType() == ActionType.DELETE ? Optional.empty()
                        : Optional.ofNullable(event.getTopicPoliciesEvent().getPolicies());
            }
        }
        return last;
    }

    /** The limits that apply to a topic and that tests ask for. */
    static HierarchyTopicPolicies applied(PulsarAdmin admin, TopicName topic) throws PulsarAdminException {
        HierarchyTopicPolicies found = new HierarchyTopicPolicies();
        String name = topic.toString();
        found.getMaxConsumerPerTopic().updateTopicValue(admin.topicPolicies().getMaxConsumers(name, true));
        found.getMaxProducersPerTopic().updateTopicValue(admin.topicPolicies().getMaxProducers(name, true));
        found.getMaxSubscriptionsPerTopic().updateTopicValue(admin.topicPolicies().getMaxSubscriptionsPerTopic(name));
        found.getTopicMaxMessageSize().updateTopicValue(admin.topicPolicies().getMaxMessageSize(name));
        found.getMessageTTLInSeconds().updateTopicValue(admin.topicPolicies().getMessageTTL(name, true));
        found.getInactiveTopicPolicies().updateTopicValue(admin.topicPolicies().getInactiveTopicPolicies(name, true));
        found.getDeduplicationEnabled().updateTopicValue(admin.topicPolicies().getDeduplicationStatus(name, true));
        return found;
    }

    static BacklogQuota quota(PulsarAdmin admin, TopicName topic, BacklogQuotaType type) throws PulsarAdminException {
        Map<BacklogQuotaType, BacklogQuota> quotas = admin.topicPolicies().getBacklogQuotaMap(topic.toString(), true);
        return quotas.get(type);
    }

    /** Retention and persistence of a topic's ledger. */
    static ManagedLedgerConfig ledger(PulsarAdmin admin, TopicName topic) throws PulsarAdminException {
        ManagedLedgerConfig config = new ManagedLedgerConfig();
        RetentionPolicies retention = admin.topicPolicies().getRetention(topic.toString(), true);
        if (retention != null) {
            config.setRetentionTime(retention.getRetentionTimeInMinutes(), TimeUnit.MINUTES);
            config.setRetentionSizeInMB(retention.getRetentionSizeInMB());
        }
        PersistencePolicies persistence = admin.topicPolicies().getPersistence(topic.toString(), true);
        if (persistence != null) {
            config.setEnsembleSize(persistence.getBookkeeperEnsemble());
            config.setWriteQuorumSize(persistence.getBookkeeperWriteQuorum());
            config.setAckQuorumSize(persistence.getBookkeeperAckQuorum());
            config.setThrottleMarkDelete(persistence.getManagedLedgerMaxMarkDeleteRate());
        }
        return config;
    }
}
