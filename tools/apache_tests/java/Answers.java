import static org.mockito.Mockito.RETURNS_DEEP_STUBS;
import static org.mockito.Mockito.mock;

import java.util.Arrays;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import org.apache.pulsar.broker.PulsarService;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.broker.testcontext.PulsarTestContext;
import org.mockito.invocation.InvocationOnMock;
import org.testng.SkipException;

/** What a test can learn of its broker from outside: addresses and settings. A test that asks for more is skipped. */
public class Answers {
    static PulsarService service(BrokerProcess broker, ServiceConfiguration conf) {
        return mock(PulsarService.class, call -> {
            switch (call.getMethod().getName()) {
                case "getBrokerServiceUrl":
                    return "pulsar://localhost:" + broker.port;
                case "getBrokerServiceUrlTls":
                    return broker.tls ? "pulsar+ssl://localhost:" + broker.portTls : null;
                case "getWebServiceAddress":
                case "getSafeWebServiceAddress":
                    return "http://localhost:" + broker.http;
                case "getWebServiceAddressTls":
                    return broker.tls ? "https://localhost:" + broker.https : null;
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
                    return "localhost:" + broker.http;
                case "getAdvertisedAddress":
                    return "localhost";
                case "getConfiguration":
                case "getConfig":
                    return conf;
                case "isRunning":
                    return broker.alive();
                case "getPulsarResources":
                    // the coordinators' topic: magnetar has its own
                    return called("createTransactionCoordinatorAssign")
                            ? mock(call.getMethod().getReturnType(), RETURNS_DEEP_STUBS) : inside(call);
                case "close":
                case "shutdownNow":
                    broker.end();
                    return null;
                case "closeAsync":
                    broker.end();
                    return CompletableFuture.completedFuture(null);
                default:
                    return always(call);
            }
        });
    }

    static PulsarTestContext context(PulsarService service, BrokerProcess broker, ServiceConfiguration conf) {
        return mock(PulsarTestContext.class, call -> {
            switch (call.getMethod().getName()) {
                case "getPulsarService":
                    return service;
                case "getConfig":
                    return conf;
                case "getMockZooKeeper":
                case "getMockZooKeeperGlobal":
                case "getSpyConfig":
                case "getLocalMetadataStore":
                case "getConfigurationMetadataStore":
                case "getBookKeeperClient":
                case "getTestZKServer":
                case "getTestZKServerGlobal":
                    return called("startBroker") || called("reuseMockBookkeeperAndMetadataStores") ? null : inside(call);
                case "close":
                    broker.end();
                    return null;
                default:
                    return always(call);
            }
        });
    }

    private static Object always(InvocationOnMock call) {
        switch (call.getMethod().getName()) {
            case "toString":
                return "a process of magnetar";
            case "hashCode":
                return System.identityHashCode(call.getMock());
            case "equals":
                return call.getMock() == call.getArgument(0);
            default:
                return inside(call);
        }
    }

    private static boolean called(String method) {
        return Arrays.stream(new Throwable().getStackTrace()).anyMatch(frame -> frame.getMethodName().equals(method));
    }

    private static Object inside(InvocationOnMock call) {
        String place = Arrays.stream(new Throwable().getStackTrace()).filter(frame -> frame.getClassName().endsWith("Test"))
                .map(StackTraceElement::toString).findFirst().orElse("a base class");
        throw new SkipException("INSIDE " + call.getMethod().getName() + " at " + place);
    }
}
