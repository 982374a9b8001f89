import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.matcher.ElementMatchers;
import org.apache.pulsar.broker.stats.prometheus.PrometheusMetricsClient;

/** A test that has its broker write metrics gets those of the process. */
public class Metrics {
    static AgentBuilder asked(AgentBuilder agent) {
        return agent.type(ElementMatchers.named("org.apache.pulsar.PrometheusMetricsTestUtil"))
                .transform((builder, type, loader, module, domain) -> builder
                        .visit(Advice.to(Generate.class).on(ElementMatchers.named("generate").and(ElementMatchers.takesArguments(6))))
                        .visit(Advice.to(GenerateWhole.class).on(ElementMatchers.named("generate").and(ElementMatchers.takesArguments(5))))
                        .visit(Advice.to(GenerateOther.class).on(ElementMatchers.named("generate").and(ElementMatchers.takesArguments(3)))));
    }

    /** Writes what the process answers at /metrics, without the lines of consumers or producers if they are not asked for. */
    public static void write(boolean consumers, boolean producers, boolean split, OutputStream out) throws IOException {
        if (split != StandIn.living().conf.isSplitTopicAndPartitionLabelInPrometheus()) {
            throw Inside.skip("metrics that its broker does not have");
        }
        for (String line : PrometheusMetricsClient.text(StandIn.living().webAddress() + "/metrics/").split("\n")) {
            if ((consumers || !line.contains("consumer_id=\"")) && (producers || !line.contains("producer_id=\""))) {
                out.write((line + "\n").getBytes(StandardCharsets.UTF_8));
            }
        }
    }

    /** In the place of PrometheusMetricsTestUtil.generate(pulsar, topics, consumers, producers, split, out). */
    public static class Generate {
        @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class)
        static boolean enter(@Advice.Argument(2) boolean consumers, @Advice.Argument(3) boolean producers,
                             @Advice.Argument(4) boolean split, @Advice.Argument(5) OutputStream out) throws IOException {
            Metrics.write(consumers, producers, split, out);
            return true;
        }
    }

    /** In the place of the one that does not say whether topics and partitions have labels of their own. */
    public static class GenerateWhole {
        @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class)
        static boolean enter(@Advice.Argument(2) boolean consumers, @Advice.Argument(3) boolean producers,
                             @Advice.Argument(4) OutputStream out) throws IOException {
            Metrics.write(consumers, producers, false, out);
            return true;
        }
    }

    /** In the place of the one that is given a generator. */
    public static class GenerateOther {
        @Advice.OnMethodEnter
        static void enter() {
            throw Metrics.skip();
        }
    }

    public static RuntimeException skip() {
        return Inside.skip("PrometheusMetricsGenerator");
    }
}
