import static org.mockito.Mockito.mock;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.bookkeeper.mledger.ManagedLedgerConfig;
import org.apache.pulsar.broker.ConfigHelper;
import org.apache.pulsar.broker.service.SystemTopicBasedTopicPoliciesService;
import org.apache.pulsar.broker.service.TopicPoliciesService;
import org.apache.pulsar.broker.service.TopicPoliciesService.GetType;
import org.apache.pulsar.client.admin.Namespaces;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.client.admin.PulsarAdminException;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.common.naming.SystemTopicNames;
import org.apache.pulsar.common.naming.TopicName;
import org.apache.pulsar.common.policies.data.BacklogQuota;
import org.apache.pulsar.common.policies.data.BacklogQuota.BacklogQuotaType;
import org.apache.pulsar.common.policies.data.HierarchyTopicPolicies;
import org.apache.pulsar.common.policies.data.PersistencePolicies;
import org.apache.pulsar.common.policies.data.PolicyHierarchyValue;
import org.apache.pulsar.common.policies.data.RetentionPolicies;
import org.apache.pulsar.common.policies.data.TopicPolicies;
import org.apache.pulsar.common.policies.data.impl.DispatchRateImpl;
import org.apache.pulsar.common.util.ObjectMapperFactory;

/** The policies of topics, as the process publishes them on `__change_events`, and as its REST interface says they apply. */
class MirroredPolicies {
    private static final int EVENT_S_MAX = 10;
    /** The policies that tests look at, by the names of their REST routes, which an event has. */
    private static final Map<String, String> ROUTES = Map.of("getMaxConsumerPerTopic", "maxConsumers",
            "getMaxProducerPerTopic", "maxProducers", "getMaxSubscriptionsPerTopic", "maxSubscriptionsPerTopic",
            "getMessageTTLInSeconds", "messageTTL", "getRetentionPolicies", "retention", "getDispatchRate", "dispatchRate",
            "getPublishRate", "publishRate", "getCompactionThreshold", "compactionThreshold");

    static TopicPoliciesService service(BrokerProcess broker) {
        return mock(SystemTopicBasedTopicPoliciesService.class, call -> call.getMethod().getName().equals("getTopicPoliciesAsync")
                ? CompletableFuture.completedFuture(published(broker, call.getArgument(0), call.<GetType>getArgument(1) == GetType.GLOBAL_ONLY))
                : Inside.of(call));
    }

    /** What was last said of a topic on the events of its namespace. */
    private static Optional<TopicPolicies> published(BrokerProcess broker, TopicName name, boolean global) throws Exception {
        TopicName topic = TopicName.get(name.getPartitionedTopicName());
        String events = "persistent://" + topic.getNamespace() + "/" + SystemTopicNames.NAMESPACE_EVENTS_LOCAL_NAME;
        try {
            broker.admin().topics().getStats(events);
        } catch (PulsarAdminException.NotFoundException e) {
            return Optional.empty();
        }
        byte[] last = null;
        try (Reader<byte[]> reader = broker.client().newReader().topic(events).startMessageId(MessageId.earliest).create()) {
            while (reader.hasMessageAvailable()) {
                Message<byte[]> message = reader.readNext(EVENT_S_MAX, TimeUnit.SECONDS);
                if (message == null) {
                    throw new PulsarClientException("no event within " + EVENT_S_MAX + " s");
                }
                if (TopicPoliciesService.unwrapEventKey(message.getKey()).equals(topic)
                        && message.getKey().startsWith(TopicPoliciesService.GLOBAL_POLICIES_MSG_KEY_PREFIX) == global) {
                    last = message.getValue();
                }
            }
        }
        if (last == null || last.length == 0) {
            return Optional.empty();
        }
        JsonNode policies = ObjectMapperFactory.getMapper().getObjectMapper().readTree(last).at("/topicPoliciesEvent/policies");
        return Optional.of(mock(TopicPolicies.class, call -> {
            String route = ROUTES.get(call.getMethod().getName());
            return route == null ? Inside.of(call) : ObjectMapperFactory.getMapper().getObjectMapper()
                    .convertValue(policies.get(route), call.getMethod().getReturnType());
        }));
    }

    /** The limits that tests ask for: the topic's and the namespace's own, and, below those, what applies. */
    static HierarchyTopicPolicies applied(PulsarAdmin admin, TopicName topic) throws PulsarAdminException {
        HierarchyTopicPolicies found = new HierarchyTopicPolicies();
        String name = topic.toString();
        String namespace = topic.getNamespace();
        org.apache.pulsar.client.admin.TopicPolicies own = admin.topicPolicies();
        Namespaces of = admin.namespaces();
        fill(found.getMaxConsumerPerTopic(), own.getMaxConsumers(name), of.getMaxConsumersPerTopic(namespace), own.getMaxConsumers(name, true));
        fill(found.getMaxProducersPerTopic(), own.getMaxProducers(name), of.getMaxProducersPerTopic(namespace),
                own.getMaxProducers(name, true));
        fill(found.getMaxSubscriptionsPerTopic(), own.getMaxSubscriptionsPerTopic(name), of.getMaxSubscriptionsPerTopic(namespace),
                StandIn.living().conf.getMaxSubscriptionsPerTopic());
        fill(found.getTopicMaxMessageSize(), own.getMaxMessageSize(name), null, StandIn.living().conf.getMaxMessageSize());
        fill(found.getMessageTTLInSeconds(), own.getMessageTTL(name), of.getNamespaceMessageTTL(namespace), own.getMessageTTL(name, true));
        fill(found.getDispatchRate(), (DispatchRateImpl) own.getDispatchRate(name), (DispatchRateImpl) of.getDispatchRate(namespace),
                (DispatchRateImpl) own.getDispatchRate(name, true));
        return found;
    }

    private static <T> void fill(PolicyHierarchyValue<T> value, T own, T ofNamespace, T applied) {
        value.updateTopicValue(own);
        value.updateNamespaceValue(ofNamespace);
        value.updateBrokerValue(applied);
    }

    static BacklogQuota quota(PulsarAdmin admin, TopicName topic, BacklogQuotaType type) throws PulsarAdminException {
        BacklogQuota own = admin.topicPolicies().getBacklogQuotaMap(topic.toString()).get(type);
        BacklogQuota ofNamespace = admin.namespaces().getBacklogQuotaMap(topic.getNamespace()).get(type);
        return own != null ? own : ofNamespace != null ? ofNamespace : ConfigHelper.backlogQuotaMap(StandIn.living().conf).get(type);
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
