import java.util.HashSet;
import java.util.Set;
import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.matcher.ElementMatchers;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.client.admin.PulsarAdminException;
import org.apache.pulsar.common.policies.data.TenantInfo;

/**
 * Names of before Pulsar 2.0, with a cluster between tenant and namespace, lose it: magnetar refuses them, and most tests
 * that have them mean no more by them than a topic. Apache Pulsar serves such topics in namespaces that were never made; here
 * they are made.
 */
public class OldNames {
    private static final String NAMESPACE = "(?!pulsar/)[^/]+/(use|usw|usc|test|global|c1)/[^/]+";
    private static final Set<String> MADE = new HashSet<>();

    static AgentBuilder rewritten(AgentBuilder agent) {
        return agent
                .type(ElementMatchers.named("org.apache.pulsar.common.naming.NamespaceName"))
                .transform((builder, type, loader, module, domain) -> builder.visit(Advice.to(One.class)
                        .on(ElementMatchers.named("get").and(ElementMatchers.takesArguments(String.class)))))
                .type(ElementMatchers.named("org.apache.pulsar.common.naming.TopicName"))
                .transform((builder, type, loader, module, domain) -> builder.visit(Advice.to(OneTopic.class)
                        .on(ElementMatchers.named("get").and(ElementMatchers.takesArguments(String.class)))))
                .type(ElementMatchers.namedOneOf("org.apache.pulsar.client.impl.ProducerBuilderImpl",
                        "org.apache.pulsar.client.impl.ReaderBuilderImpl"))
                .transform((builder, type, loader, module, domain) -> builder.visit(Advice.to(Used.class)
                        .on(ElementMatchers.named("topic").and(ElementMatchers.takesArguments(String.class)))))
                .type(ElementMatchers.named("org.apache.pulsar.client.admin.internal.TopicsImpl"))
                .transform((builder, type, loader, module, domain) -> builder.visit(Advice.to(Used.class)
                        .on(ElementMatchers.namedOneOf("createPartitionedTopicAsync", "createNonPartitionedTopicAsync"))))
                .type(ElementMatchers.named("org.apache.pulsar.client.api.RawReader"))
                .transform((builder, type, loader, module, domain) -> builder.visit(Advice.to(OfRawReader.class)
                        .on(ElementMatchers.named("create").and(ElementMatchers.takesArgument(1, String.class)))))
                .type(ElementMatchers.named("org.apache.pulsar.client.impl.ConsumerBuilderImpl"))
                .transform((builder, type, loader, module, domain) -> builder.visit(Advice.to(Many.class)
                        .on(ElementMatchers.named("topic").and(ElementMatchers.takesArguments(String[].class)))));
    }

    /** A topic's or a namespace's name without its cluster. */
    public static String of(String name) {
        if (name == null) {
            return null;
        }
        String[] parts = name.split("://", 2);
        if (parts.length == 2 && parts[1].matches(NAMESPACE + "/.+")) {
            return parts[0] + "://" + parts[1].replaceFirst("/[^/]+/", "/");
        }
        return name.matches(NAMESPACE) ? name.replaceFirst("/[^/]+/", "/") : name;
    }

    /** A topic's name without its cluster; short names never had one, and `tenant/test/topic` is one of today. */
    public static String topic(String name) {
        return name != null && name.contains("://") ? of(name) : name;
    }

    /** The name that a client is to use, whose namespace there is then. */
    public static String used(String name) {
        String rewritten = topic(name);
        if (rewritten != null && !rewritten.equals(name)) {
            String[] parts = rewritten.split("://", 2)[1].split("/");
            BrokerProcess broker = StandIn.living();
            synchronized (MADE) {
                if (MADE.add(broker.data + " " + parts[0] + "/" + parts[1])) {
                    make(broker, parts[0], parts[1]);
                }
            }
        }
        return rewritten;
    }

    private static void make(BrokerProcess broker, String tenant, String namespace) {
        try {
            PulsarAdmin admin = broker.admin();
            if (!admin.tenants().getTenants().contains(tenant)) {
                admin.tenants().createTenant(tenant, TenantInfo.builder().allowedClusters(Set.of(broker.conf.getClusterName())).build());
            }
            if (!admin.namespaces().getNamespaces(tenant).contains(tenant + "/" + namespace)) {
                admin.namespaces().createNamespace(tenant + "/" + namespace);
            }
        } catch (PulsarAdminException e) {
            System.err.println("the namespace of an old name was not made: " + e);
        }
    }

    /** Before a method whose first argument is a namespace's name. */
    public static class One {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(value = 0, readOnly = false) String name) {
            name = OldNames.of(name);
        }
    }

    /** Before a method whose first argument is a topic's name. */
    public static class OneTopic {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(value = 0, readOnly = false) String name) {
            name = OldNames.topic(name);
        }
    }

    /** Before a method of a client whose first argument is a name. */
    public static class Used {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(value = 0, readOnly = false) String name) {
            name = OldNames.used(name);
        }
    }

    /** Before a reader of raw entries is made. */
    public static class OfRawReader {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(value = 1, readOnly = false) String name) {
            name = OldNames.used(name);
        }
    }

    /** Before a method of a client whose first argument is an array of names. */
    public static class Many {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(0) String[] names) {
            for (int i = 0; names != null && i < names.length; i++) {
                names[i] = OldNames.used(names[i]);
            }
        }
    }
}
