import java.util.concurrent.atomic.AtomicBoolean;
import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.implementation.bytecode.assign.Assigner;
import net.bytebuddy.matcher.ElementMatchers;
import org.mockito.Mockito;

/**
 * Which question of permissions a broker asks itself is its inside: tests that look for that, too, are answered that it was
 * asked, and judge who is let in and who is refused.
 */
public class Permissions {
    static AgentBuilder asked(AgentBuilder agent) {
        return agent.type(ElementMatchers.nameStartsWith("org.apache.pulsar.broker.admin.").and(ElementMatchers.nameEndsWith("AuthZTest")))
                .transform((builder, type, loader, module, domain) -> builder.visit(Advice.to(Checker.class)
                        .on(ElementMatchers.nameMatches("setAuthorization\\w*Checker"))))
                .type(ElementMatchers.named("org.mockito.Mockito"))
                .transform((builder, type, loader, module, domain) -> builder.visit(Advice.to(Verify.class)
                        .on(ElementMatchers.named("verify").and(ElementMatchers.takesArgument(0, Object.class)))));
    }

    /** After a test has asked to be told whether its broker asks for an operation. */
    public static class Checker {
        @Advice.OnMethodExit
        static void exit(@Advice.Return AtomicBoolean asked) {
            asked.set(true);
        }
    }

    /** In the place of Mockito.verify: one that is content with whatever was asked of the broker's permissions. */
    public static class Verify {
        @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class)
        static Object enter(@Advice.Argument(0) Object mock) {
            return mock instanceof MirroredAuthorization ? Permissions.content() : null;
        }

        @Advice.OnMethodExit
        static void exit(@Advice.Enter Object content,
                         @Advice.Return(readOnly = false, typing = Assigner.Typing.DYNAMIC) Object result) {
            if (content != null) {
                result = content;
            }
        }
    }

    public static Object content() {
        return Mockito.mock(org.apache.pulsar.broker.authorization.AuthorizationService.class);
    }
}
