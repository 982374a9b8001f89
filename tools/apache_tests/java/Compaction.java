import java.util.concurrent.CompletableFuture;
import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.implementation.bytecode.assign.Assigner;
import net.bytebuddy.matcher.ElementMatchers;
import org.apache.pulsar.client.admin.LongRunningProcessStatus;
import org.apache.pulsar.client.admin.PulsarAdmin;

/** A test that has a topic compacted by a compactor of its own has it compacted by the process. */
public class Compaction {
    static AgentBuilder asked(AgentBuilder agent) {
        return agent.type(ElementMatchers.named("org.apache.pulsar.compaction.Compactor"))
                .transform((builder, type, loader, module, domain) -> builder.visit(Advice.to(Compact.class)
                        .on(ElementMatchers.named("compact").and(ElementMatchers.takesArguments(String.class)))));
    }

    /** Compacts a topic, and answers the ledger of what it has become. */
    public static CompletableFuture<Long> run(String topic) {
        PulsarAdmin admin = StandIn.living().admin();
        try {
            admin.topics().triggerCompaction(topic);
            LongRunningProcessStatus status;
            do {
                Thread.sleep(50);
                status = admin.topics().compactionStatus(topic);
            } while (status.status == LongRunningProcessStatus.Status.RUNNING);
            if (status.status == LongRunningProcessStatus.Status.ERROR) {
                throw new IllegalStateException(status.lastError);
            }
            return CompletableFuture.completedFuture(admin.topics().getInternalStats(topic).compactedLedger.ledgerId);
        } catch (Exception e) {
            return CompletableFuture.failedFuture(e);
        }
    }

    /** In the place of Compactor.compact. */
    public static class Compact {
        @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class)
        static Object enter(@Advice.Argument(0) String topic) {
            return Compaction.run(topic);
        }

        @Advice.OnMethodExit
        static void exit(@Advice.Enter Object made,
                         @Advice.Return(readOnly = false, typing = Assigner.Typing.DYNAMIC) Object result) {
            result = made;
        }
    }
}
