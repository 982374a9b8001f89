import static org.mockito.Mockito.RETURNS_DEEP_STUBS;
import static org.mockito.Mockito.mock;

import java.lang.reflect.InvocationHandler;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import net.bytebuddy.ByteBuddy;
import net.bytebuddy.dynamic.scaffold.subclass.ConstructorStrategy;
import net.bytebuddy.implementation.InvocationHandlerAdapter;
import net.bytebuddy.matcher.ElementMatchers;
import org.apache.bookkeeper.client.BookKeeper;
import org.apache.pulsar.broker.BookKeeperClientFactory;
import org.apache.pulsar.broker.PulsarService;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.broker.TransactionMetadataStoreService;
import org.apache.pulsar.broker.testcontext.PulsarTestContext;
import org.apache.pulsar.broker.testcontext.SpyConfig;
import org.apache.pulsar.common.partition.PartitionedTopicMetadata;
import org.apache.pulsar.transaction.coordinator.TransactionCoordinatorID;
import org.apache.pulsar.transaction.coordinator.TransactionMetadataStore;
import org.mockito.invocation.InvocationOnMock;
import org.objenesis.ObjenesisStd;

/**
 * What a test can learn of its broker from outside: addresses, settings, and what the REST interface shows of its topics. A
 * test that asks for more is skipped.
 */
public class Answers {
    /** For what tests have their broker do; it runs in their own process. */
    private static final ScheduledExecutorService EXECUTOR = Executors.newSingleThreadScheduledExecutor(task -> {
        Thread thread = new Thread(task);
        thread.setDaemon(true);
        return thread;
    });

    private static int coordinators;

    static PulsarService service(BrokerProcess broker, ServiceConfiguration conf) {
        return mock(PulsarService.class, call -> {
            switch (call.getMethod().getName()) {
                case "getBrokerServiceUrl":
                    return broker.address();
                case "getBrokerServiceUrlTls":
                    return broker.addressTls();
                case "getWebServiceAddress":
                case "getSafeWebServiceAddress":
                    return broker.webAddress();
                case "getWebServiceAddressTls":
                    return broker.webAddressTls();
                case "getBrokerListenPort":
                    return Optional.of(broker.port);
                case "getBrokerListenPortTls":
                    return broker.tls ? Optional.of(broker.portTls) : Optional.empty();
                case "getListenPortHTTP":
                    return Optional.of(broker.http);
                case "getListenPortHTTPS":
                    return broker.tls ? Optional.of(broker.https) : Optional.empty();
                case "getBrokerId":
                case "getLookupServiceAddress":
                    return broker.host() + ":" + broker.http;
                case "getAdvertisedAddress":
                    return broker.host();
                case "getConfiguration":
                case "getConfig":
                    return conf;
                case "isRunning":
                    return broker.alive();
                case "getBrokerService":
                    return new MirroredBroker(broker, (PulsarService) call.getMock()).service();
                case "getExecutor":
                    return EXECUTOR;
                case "getAdminClient":
                    return broker.admin();
                case "getClient":
                    return broker.client();
                case "getLocalMetadataStore":
                case "getConfigurationMetadataStore":
                    return makesBundleFactory() ? mock(call.getMethod().getReturnType(), RETURNS_DEEP_STUBS) : Inside.of(call);
                case "getPulsarResources":
                    if (makesBundleFactory()) {
                        return mock(call.getMethod().getReturnType(), RETURNS_DEEP_STUBS);
                    }
                    // the coordinators' topic: magnetar has its own
                    return beginsTransactions() ? resources(call) : Inside.of(call);
                case "getTransactionMetadataStoreService":
                    return beginsTransactions() ? stores() : Inside.of(call);
                case "getTopicPoliciesService":
                    return MirroredPolicies.service(broker);
                case "getBookKeeperClientFactory":
                    // for a compactor of the test's own, which `Compaction` replaces
                    return Inside.called("setup") ? bookKeepers() : Inside.of(call);
                case "close":
                case "shutdownNow":
                    broker.end();
                    return null;
                case "closeAsync":
                    broker.end();
                    return CompletableFuture.completedFuture(null);
                default:
                    return Inside.of(call);
            }
        });
    }

    /** No mock of Mockito's: tests ask it for its bookies' client while they say what that one answers. */
    static PulsarTestContext context(PulsarService service, BrokerProcess broker, ServiceConfiguration conf) {
        BookKeeper bookKeeper = mock(BookKeeper.class);
        InvocationHandler handler = (context, method, arguments) -> {
            switch (method.getName()) {
                case "getPulsarService":
                    return service;
                case "getConfig":
                    return conf;
                case "getMockZooKeeper":
                case "getMockZooKeeperGlobal":
                case "getTestZKServer":
                case "getTestZKServerGlobal":
                    return begins() ? null : Inside.of(context, method, arguments);
                case "getSpyConfig":
                    return SpyConfig.builder().build();
                case "getLocalMetadataStore":
                case "getConfigurationMetadataStore":
                    // a broker that is started again is handed them by the one before
                    return begins() ? mock(method.getReturnType()) : Inside.of(context, method, arguments);
                case "getBookKeeperClient":
                    return begins() || Inside.called("setup") ? bookKeeper : Inside.of(context, method, arguments);
                case "close":
                    broker.end();
                    return null;
                default:
                    return Inside.of(context, method, arguments);
            }
        };
        return new ObjenesisStd().newInstance(new ByteBuddy()
                .subclass(PulsarTestContext.class, ConstructorStrategy.Default.NO_CONSTRUCTORS)
                .method(ElementMatchers.isPublic()).intercept(InvocationHandlerAdapter.of(handler)).make()
                .load(PulsarTestContext.class.getClassLoader()).getLoaded());
    }

    private static boolean begins() {
        return Inside.called("startBroker") || Inside.called("reuseMockBookkeeperAndMetadataStores");
    }


    /** Whether a test makes a NamespaceBundleFactory while it begins, which it may never use. */
    private static boolean makesBundleFactory() {
        return Inside.called("setupConfigAndStart");
    }

    private static boolean beginsTransactions() {
        return Inside.called("createTransactionCoordinatorAssign") || Inside.called("initTransaction");
    }

    /** Resources in which a test creates the topic of as many coordinators as it wants. */
    private static Object resources(InvocationOnMock call) {
        if (call.getMethod().getName().equals("createPartitionedTopic")) {
            coordinators = call.<PartitionedTopicMetadata>getArgument(1).partitions;
            return null;
        }
        Class<?> kind = call.getMethod().getReturnType();
        return kind.getName().startsWith("org.apache.pulsar.broker.resources") ? mock(kind, Answers::resources) : null;
    }

    /** Tests wait until their broker has as many coordinators as they have asked for; a process has its own number. */
    private static TransactionMetadataStoreService stores() {
        Map<TransactionCoordinatorID, TransactionMetadataStore> stores = new HashMap<>();
        for (int id = 0; id < coordinators; id++) {
            stores.put(TransactionCoordinatorID.get(id), null);
        }
        return mock(TransactionMetadataStoreService.class,
                call -> call.getMethod().getName().equals("getStores") ? stores : Inside.of(call));
    }

    private static BookKeeperClientFactory bookKeepers() {
        return mock(BookKeeperClientFactory.class, call -> CompletableFuture.completedFuture(mock(BookKeeper.class)));
    }
}
