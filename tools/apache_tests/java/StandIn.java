import java.lang.instrument.Instrumentation;
import java.lang.reflect.Field;
import java.util.Arrays;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import net.bytebuddy.agent.ByteBuddyAgent;
import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.implementation.bytecode.assign.Assigner;
import net.bytebuddy.matcher.ElementMatchers;
import org.apache.pulsar.broker.PulsarService;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.broker.testcontext.PulsarTestContext;
import org.apache.pulsar.client.admin.PulsarAdminException;
import org.testng.TestNG;

/**
 * Runs TestNG with magnetar in the place of the broker that Apache Pulsar's tests start in their own process.
 *
 * <p>Methods are changed while their classes are loaded: the builder of a test's broker makes a process of magnetar, the
 * admin client lets the tests create the cluster and the tenant that a standalone broker has already, and the process
 * follows what a test changes in its broker's configuration, compacts and measures for it.
 */
public class StandIn {
    public static void main(String[] arguments) throws Exception {
        Instrumentation instrumentation = ByteBuddyAgent.install();
        AgentBuilder agent = new AgentBuilder.Default()
                .type(ElementMatchers.named("org.apache.pulsar.broker.testcontext.PulsarTestContext$Builder")
                        .or(ElementMatchers.hasSuperType(
                                ElementMatchers.named("org.apache.pulsar.broker.testcontext.PulsarTestContext$Builder"))))
                .transform((builder, type, loader, module, domain) ->
                        builder.visit(Advice.to(Build.class).on(ElementMatchers.named("build"))))
                .type(ElementMatchers.namedOneOf("org.apache.pulsar.client.admin.internal.ClustersImpl",
                        "org.apache.pulsar.client.admin.internal.TenantsImpl",
                        "org.apache.pulsar.client.admin.internal.NamespacesImpl"))
                .transform((builder, type, loader, module, domain) -> builder.visit(Advice.to(Create.class)
                        .on(ElementMatchers.namedOneOf("createCluster", "createTenant", "createNamespace"))))
                .type(ElementMatchers.named("org.apache.pulsar.client.admin.internal.TenantsImpl"))
                .transform((builder, type, loader, module, domain) -> builder.visit(Advice.to(Tenants.class)
                        .on(ElementMatchers.named("getTenants"))))
                .type(ElementMatchers.namedOneOf("org.apache.pulsar.client.admin.internal.TopicsImpl",
                        "org.apache.pulsar.client.admin.internal.NamespacesImpl"))
                .transform((builder, type, loader, module, domain) -> builder.visit(Advice.to(Delete.class)
                        .on(ElementMatchers.namedOneOf("delete", "deletePartitionedTopic", "deleteNamespace")
                                .and(ElementMatchers.takesArgument(1, boolean.class)))));
        agent = Metrics.asked(Compaction.asked(OldNames.rewritten(ChangedSettings.followed(agent))));
        agent = Credentials.replaced(Permissions.asked(agent));
        agent.installOn(instrumentation);
        // by itself, not while another class is changed, which would leave it as it is
        Class.forName("org.apache.pulsar.common.naming.TopicName");
        TestNG.main(arguments);
    }

    /** In the place of PulsarTestContext.Builder.build: the context of a process. */
    public static class Build {
        @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class)
        static Object enter(@Advice.This Object builder) {
            return StandIn.context(builder);
        }

        @Advice.OnMethodExit
        static void exit(@Advice.Enter Object made,
                         @Advice.Return(readOnly = false, typing = Assigner.Typing.DYNAMIC) Object result) {
            result = made;
        }
    }

    /** After a creation over REST: what a standalone broker has already is what the test wants. */
    public static class Create {
        @Advice.OnMethodExit(onThrowable = Throwable.class)
        static void exit(@Advice.Argument(0) String name, @Advice.Thrown(readOnly = false) Throwable thrown) {
            if (thrown instanceof PulsarAdminException.ConflictException && StandIn.isThere(name)) {
                thrown = null;
            }
        }
    }

    /** Before a deletion after a test: one that was skipped has left its producers and consumers behind. */
    public static class Delete {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(value = 1, readOnly = false) boolean force) {
            force = force || !Verdicts.inTest;
        }
    }

    /** After a question for the tenants: what only a standalone broker has is not what the test wants to hear of. */
    public static class Tenants {
        @Advice.OnMethodExit
        static void exit(@Advice.Return(readOnly = false) List<String> found) {
            found = StandIn.withoutThose(found);
        }
    }

    private static final Set<String> THERE = new HashSet<>();

    /** Some classes have several instances, each with a broker of its own. */
    private static final Map<Object, BrokerProcess> OF_CONTEXTS = new IdentityHashMap<>();

    private static BrokerProcess living;
    private static PulsarTestContext last;

    /** The process of the test's broker. */
    static BrokerProcess living() {
        if (living == null || !living.alive()) {
            throw Inside.skip("a broker that does not run");
        }
        return living;
    }

    /** Whether a broker has it from its start, or has it without the cluster in its name; asked a second time, the test has created it. */
    public static boolean isThere(String name) {
        return THERE.remove(name) || !OldNames.of(name).equals(name);
    }

    public static List<String> withoutThose(List<String> names) {
        return names.stream().filter(name -> !THERE.contains(name)).collect(Collectors.toList());
    }

    /** A context whose broker is a process of magnetar: a new one, or one on the data of the test's broker that ended. */
    public static Object context(Object builder) {
        try {
            Field field = field(builder.getClass(), "config");
            ServiceConfiguration conf = (ServiceConfiguration) field.get(builder);
            if (conf == null) {
                throw Inside.skip("a broker without configuration");
            }
            BrokerProcess before = OF_CONTEXTS.get(field(builder.getClass(), "otherContextToClose").get(builder));
            if (living != null && living.alive()) {
                if (Arrays.stream(new Throwable().getStackTrace()).anyMatch(e -> e.getClassName().endsWith("TransactionTestBase"))) {
                    return last; // its three brokers serve three coordinators; ours has all in one
                }
                if (Inside.called("setupConfigAndStart")) {
                    return last; // AdminApiTest begins with two, and most of its tests use one
                }
                if (!Inside.called("createMainPulsarTestContext")) {
                    throw Inside.skip("a second broker");
                }
            }
            living = new BrokerProcess(conf, before);
            if (before == null) {
                THERE.addAll(Set.of(conf.getClusterName(), "pulsar", "pulsar/system"));
            }
            PulsarService service = Answers.service(living, conf);
            field = field(builder.getClass(), "pulsarServiceCustomizer");
            if (field.get(builder) != null) {
                @SuppressWarnings("unchecked")
                Consumer<PulsarService> customizer = (Consumer<PulsarService>) field.get(builder);
                try {
                    customizer.accept(service);
                } catch (RuntimeException e) {
                    if (Inside.asked() == null) {
                        throw e;
                    }
                    System.err.println("the test does without what it prepares: " + e);
                }
            }
            last = Answers.context(service, living, conf);
            OF_CONTEXTS.put(last, living);
            return last;
        } catch (RuntimeException | Error e) {
            throw e;
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    private static Field field(Class<?> type, String name) throws NoSuchFieldException {
        for (Class<?> c = type; c != null; c = c.getSuperclass()) {
            try {
                Field field = c.getDeclaredField(name);
                field.setAccessible(true);
                return field;
            } catch (NoSuchFieldException e) {
                continue;
            }
        }
        throw new NoSuchFieldException(name);
    }
}
