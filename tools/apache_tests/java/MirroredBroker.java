import static org.mockito.Mockito.mock;

import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import org.apache.pulsar.broker.PulsarServerException;
import org.apache.pulsar.broker.PulsarService;
import org.apache.pulsar.broker.namespace.NamespaceService;
import org.apache.pulsar.broker.service.BrokerService;
import org.apache.pulsar.broker.service.Topic;
import org.apache.pulsar.client.admin.ListTopicsOptions;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.client.admin.PulsarAdminException;
import org.apache.pulsar.common.naming.SystemTopicNames;
import org.apache.pulsar.common.naming.TopicDomain;
import org.apache.pulsar.common.naming.TopicName;
import org.mockito.invocation.InvocationOnMock;

/** The topics of a process, as its REST interface shows them. */
class MirroredBroker {
    private final BrokerProcess broker;
    private final PulsarService pulsar;
    private final MirroredAuthorization authorization;

    MirroredBroker(BrokerProcess broker, PulsarService pulsar) throws PulsarServerException {
        this.broker = broker;
        this.pulsar = pulsar;
        this.authorization = new MirroredAuthorization(broker);
    }

    BrokerService service() {
        return mock(BrokerService.class, call -> {
            switch (call.getMethod().getName()) {
                case "getPulsar":
                case "pulsar":
                    return pulsar;
                case "updateRates":
                    broker.measured();
                    return null;
                case "getTopicReference":
                    return loaded(name(call));
                case "getTopicIfExists":
                    return CompletableFuture.completedFuture(loaded(name(call)));
                case "getOrCreateTopic":
                    return CompletableFuture.completedFuture(created(name(call)));
                case "getTopic":
                    return CompletableFuture.completedFuture(
                            call.<Boolean>getArgument(1) ? Optional.of(created(name(call))) : loaded(name(call)));
                case "getTopics":
                    return topics();
                case "forEachTopic":
                    topics().values().forEach(topic -> call.<Consumer<Topic>>getArgument(0).accept(topic.join().get()));
                    return null;
                case "checkMessageExpiry":
                    for (String name : topics().keySet()) {
                        if (TopicName.get(name).isPersistent()) {
                            new MirroredTopic(broker, TopicName.get(name)).expire();
                        }
                    }
                    return null;
                case "getListenPort":
                    return pulsar.getBrokerListenPort();
                case "getListenPortTls":
                    return pulsar.getBrokerListenPortTls();
                case "getAuthorizationService":
                    return authorization;
                case "isAuthenticationEnabled":
                    return broker.conf.isAuthenticationEnabled();
                case "isAuthorizationEnabled":
                    return broker.conf.isAuthorizationEnabled();
                case "isSystemTopic":
                    TopicName topic = TopicName.get(name(call));
                    return NamespaceService.isSystemServiceNamespace(topic.getNamespace())
                            || SystemTopicNames.isSystemTopic(topic);
                default:
                    return Inside.of(call);
            }
        });
    }

    private static String name(InvocationOnMock call) {
        return call.getArgument(0).toString();
    }

    private Optional<Topic> loaded(String name) throws PulsarAdminException {
        TopicName topic = TopicName.get(name);
        try {
            boolean exists = broker.admin().topics().getList(topic.getNamespace(), topic.getDomain(),
                    ListTopicsOptions.builder().includeSystemTopic(true).build()).contains(topic.toString());
            return exists ? Optional.of(new MirroredTopic(broker, topic).topic()) : Optional.empty();
        } catch (PulsarAdminException.NotFoundException e) {
            return Optional.empty();
        }
    }

    private Topic created(String name) throws PulsarAdminException {
        Optional<Topic> found = loaded(name);
        if (found.isEmpty()) {
            if (TopicName.get(name).isPartitioned()) {
                throw Inside.skip("the creation of one partition");
            }
            broker.admin().topics().createNonPartitionedTopic(name);
        }
        return found.isPresent() ? found.get() : new MirroredTopic(broker, TopicName.get(name)).topic();
    }

    private Map<String, CompletableFuture<Optional<Topic>>> topics() throws PulsarAdminException {
        Map<String, CompletableFuture<Optional<Topic>>> found = new TreeMap<>();
        PulsarAdmin admin = broker.admin();
        for (String tenant : admin.tenants().getTenants()) {
            for (String namespace : admin.namespaces().getNamespaces(tenant)) {
                for (TopicDomain domain : TopicDomain.values()) {
                    for (String name : admin.topics().getList(namespace, domain)) {
                        found.put(name, CompletableFuture.completedFuture(
                                Optional.of(new MirroredTopic(broker, TopicName.get(name)).topic())));
                    }
                }
            }
        }
        return found;
    }
}
