import java.util.Collection;
import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.matcher.ElementMatchers;

/**
 * A test sets something in the configuration object of its running broker: the process follows before the test's next step.
 *
 * <p>A dynamic setting is set over REST, for any other the process starts again on its data and its ports. What a test sets
 * over REST itself stands in the configuration object afterwards.
 */
public class ChangedSettings {
    static AgentBuilder followed(AgentBuilder agent) {
        return agent
                .type(ElementMatchers.named("org.apache.pulsar.broker.ServiceConfiguration"))
                .transform((builder, type, loader, module, domain) -> builder.visit(Advice.to(Set.class)
                        .on(ElementMatchers.isSetter().or(ElementMatchers.returns(
                                ElementMatchers.isSubTypeOf(Collection.class).and(ElementMatchers.isInterface()))))))
                .type(ElementMatchers.namedOneOf("org.apache.pulsar.client.admin.internal.BaseResource",
                        "org.apache.pulsar.client.impl.ClientBuilderImpl", "org.apache.pulsar.client.impl.ProducerBuilderImpl",
                        "org.apache.pulsar.client.impl.ConsumerBuilderImpl", "org.apache.pulsar.client.impl.ReaderBuilderImpl"))
                .transform((builder, type, loader, module, domain) -> builder.visit(Advice.to(Step.class)
                        .on(ElementMatchers.namedOneOf("request", "requestAsync", "build", "createAsync", "subscribeAsync"))))
                .type(ElementMatchers.named("org.apache.pulsar.client.admin.internal.BrokersImpl"))
                .transform((builder, type, loader, module, domain) -> builder.visit(Advice.to(OverRest.class)
                        .on(ElementMatchers.named("updateDynamicConfiguration"))));
    }

    /** After a setter of a ServiceConfiguration, or a getter of a collection that a test may change. */
    public static class Set {
        @Advice.OnMethodExit
        static void exit(@Advice.This Object conf) {
            BrokerProcess.set(conf);
        }
    }

    /** After a test has set a dynamic setting over REST. */
    public static class OverRest {
        @Advice.OnMethodExit
        static void exit(@Advice.Argument(0) String name, @Advice.Argument(1) String value) {
            BrokerProcess.took(name, value);
        }
    }

    /** Before a step that a test takes: a request over REST, a client, producer, consumer or reader. */
    public static class Step {
        @Advice.OnMethodEnter
        static void enter() {
            BrokerProcess.follow();
        }
    }
}
