import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import javax.ws.rs.client.WebTarget;
import org.apache.commons.lang3.reflect.FieldUtils;
import org.apache.pulsar.broker.PulsarServerException;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.broker.authentication.AuthenticationDataSource;
import org.apache.pulsar.broker.authorization.AuthorizationService;
import org.apache.pulsar.broker.resources.PulsarResources;
import org.apache.pulsar.client.admin.GrantTopicPermissionOptions;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.client.admin.RevokeTopicPermissionOptions;
import org.apache.pulsar.client.admin.internal.BaseResource;
import org.apache.pulsar.common.naming.NamespaceName;
import org.apache.pulsar.common.naming.TopicName;
import org.apache.pulsar.common.policies.data.AuthAction;
import org.apache.pulsar.common.policies.data.NamespaceOperation;
import org.apache.pulsar.common.policies.data.TopicOperation;
import org.apache.pulsar.common.util.ObjectMapperFactory;
import org.mockito.Mockito;

/**
 * The permissions of a process: what a role may do is asked with `/admin/v2/permissions/explain`, and grants are made over REST.
 *
 * <p>It is an object of its own and no mock, because tests make spies of it.
 */
public class MirroredAuthorization extends AuthorizationService {
    private final BrokerProcess broker;

    MirroredAuthorization(BrokerProcess broker) throws PulsarServerException {
        super(builtIn(), Mockito.mock(PulsarResources.class));
        this.broker = broker;
    }

    private static ServiceConfiguration builtIn() {
        return new ServiceConfiguration(); // its provider is Apache Pulsar's own, and is not asked
    }

    @Override
    public CompletableFuture<Boolean> isSuperUser(String role, AuthenticationDataSource data) {
        return answer(() -> allowed(role, "PUT /admin/v2/clusters/another"));
    }

    @Override
    public CompletableFuture<Boolean> canProduceAsync(TopicName topic, String role, AuthenticationDataSource data) {
        return answer(() -> allowed(role, "PRODUCE", "topic", name(topic)));
    }

    @Override
    public CompletableFuture<Boolean> canConsumeAsync(TopicName topic, String role, AuthenticationDataSource data, String subscription) {
        return answer(() -> subscription == null || subscription.isEmpty() ? allowed(role, "CONSUME", "topic", name(topic))
                : allowed(role, "CONSUME", "topic", name(topic), "subscription", subscription));
    }

    @Override
    public CompletableFuture<Boolean> canLookupAsync(TopicName topic, String role, AuthenticationDataSource data) {
        return answer(() -> allowed(role, "LOOKUP", "topic", name(topic)));
    }

    @Override
    public boolean canProduce(TopicName topic, String role, AuthenticationDataSource data) throws Exception {
        return waited(canProduceAsync(topic, role, data));
    }

    @Override
    public boolean canConsume(TopicName topic, String role, AuthenticationDataSource data, String subscription) throws Exception {
        return waited(canConsumeAsync(topic, role, data, subscription));
    }

    @Override
    public boolean canLookup(TopicName topic, String role, AuthenticationDataSource data) throws Exception {
        return waited(canLookupAsync(topic, role, data));
    }

    @Override
    public CompletableFuture<Boolean> allowNamespaceOperationAsync(NamespaceName namespace, NamespaceOperation operation, String role,
                                                                   AuthenticationDataSource data) {
        return answer(() -> allowed(role, operation.name(), "namespace", OldNames.of(namespace.toString())));
    }

    @Override
    public CompletableFuture<Boolean> allowTopicOperationAsync(TopicName topic, TopicOperation operation, String role,
                                                               AuthenticationDataSource data) {
        return answer(() -> data != null && data.hasSubscription()
                ? allowed(role, operation.name(), "topic", name(topic), "subscription", data.getSubscription())
                : allowed(role, operation.name(), "topic", name(topic)));
    }

    @Override
    public CompletableFuture<Void> grantPermissionAsync(NamespaceName namespace, Set<AuthAction> actions, String role, String data) {
        return admin(admin -> admin.namespaces().grantPermissionOnNamespace(namespace.toString(), role, actions));
    }

    @Override
    public CompletableFuture<Void> grantPermissionAsync(TopicName topic, Set<AuthAction> actions, String role, String data) {
        return admin(admin -> admin.topics().grantPermission(topic.toString(), role, actions));
    }

    @Override
    public CompletableFuture<Void> revokePermissionAsync(NamespaceName namespace, String role) {
        return admin(admin -> admin.namespaces().revokePermissionsOnNamespace(namespace.toString(), role));
    }

    @Override
    public CompletableFuture<Void> revokePermissionAsync(TopicName topic, String role) {
        return admin(admin -> admin.topics().revokePermissions(topic.toString(), role));
    }

    @Override
    public CompletableFuture<Void> grantPermissionAsync(List<GrantTopicPermissionOptions> options) {
        return admin(admin -> admin.namespaces().grantPermissionOnTopics(options));
    }

    @Override
    public CompletableFuture<Void> revokePermissionAsync(List<RevokeTopicPermissionOptions> options) {
        return admin(admin -> admin.namespaces().revokePermissionOnTopics(options));
    }

    @Override
    public CompletableFuture<Void> grantSubscriptionPermissionAsync(NamespaceName namespace, String subscription, Set<String> roles,
                                                                    String data) {
        return admin(admin -> admin.namespaces().grantPermissionOnSubscription(namespace.toString(), subscription, roles));
    }

    @Override
    public CompletableFuture<Void> revokeSubscriptionPermissionAsync(NamespaceName namespace, String subscription, String role,
                                                                     String data) {
        return admin(admin -> admin.namespaces().revokePermissionOnSubscription(namespace.toString(), subscription, role));
    }

    @Override
    public CompletableFuture<Map<String, Set<AuthAction>>> getPermissionsAsync(NamespaceName namespace) {
        return broker.admin().namespaces().getPermissionsAsync(namespace.toString());
    }

    @Override
    public CompletableFuture<Map<String, Set<AuthAction>>> getPermissionsAsync(TopicName topic) {
        return broker.admin().topics().getPermissionsAsync(topic.toString());
    }

    @Override
    public boolean isValidOriginalPrincipal(String principal, String original, AuthenticationDataSource data) {
        throw Inside.skip("AuthorizationService.isValidOriginalPrincipal");
    }

    @Override
    public boolean isValidOriginalPrincipal(String principal, String original, java.net.SocketAddress address, boolean http) {
        throw Inside.skip("AuthorizationService.isValidOriginalPrincipal");
    }

    private static String name(TopicName topic) {
        return OldNames.of(topic.toString());
    }

    /** What the process says of an operation, with the object in pairs of a name and a value. */
    private boolean allowed(String role, String operation, String... object) throws Exception {
        PulsarAdmin admin = broker.admin();
        WebTarget target = ((WebTarget) FieldUtils.readField(admin, "root", true)).path("/admin/v2/permissions/explain")
                .queryParam("role", role).queryParam("operation", operation.replace(" ", "%20"));
        for (int i = 0; i < object.length; i += 2) {
            target = target.queryParam(object[i], object[i + 1]);
        }
        Map<?, ?> said = ObjectMapperFactory.getMapper().reader().forType(Map.class)
                .readValue(((BaseResource) admin.tenants()).request(target).get(String.class));
        String reason = String.valueOf(said.get("reason"));
        if (reason.startsWith("Failed to create consumer - The subscription name needs to be prefixed")) {
            throw new PulsarServerException(reason); // which is not only a refusal in Java
        }
        return Boolean.TRUE.equals(said.get("allowed"));
    }

    private static <T> CompletableFuture<T> answer(Callable<T> question) {
        try {
            return CompletableFuture.completedFuture(question.call());
        } catch (Exception e) {
            return CompletableFuture.failedFuture(e);
        }
    }

    private interface Request {
        void of(PulsarAdmin admin) throws Exception;
    }

    private CompletableFuture<Void> admin(Request request) {
        return answer(() -> {
            request.of(broker.admin());
            return null;
        });
    }

    private static boolean waited(CompletableFuture<Boolean> answer) throws Exception {
        try {
            return answer.get();
        } catch (ExecutionException e) {
            throw e.getCause() instanceof Exception ? (Exception) e.getCause() : e;
        }
    }
}
