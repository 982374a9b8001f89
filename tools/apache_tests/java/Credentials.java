import io.jsonwebtoken.Jwts;
import io.jsonwebtoken.SignatureAlgorithm;
import io.jsonwebtoken.security.Keys;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import javax.crypto.SecretKey;
import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.implementation.bytecode.assign.Assigner;
import net.bytebuddy.matcher.ElementMatchers;
import org.apache.pulsar.broker.authentication.AuthenticationProviderToken;
import org.apache.pulsar.broker.authentication.utils.AuthTokenUtils;
import org.apache.pulsar.client.impl.auth.AuthenticationDataToken;

/**
 * Tests whose own provider takes the name that a client says for its role: client and process have tokens of that name instead.
 */
public class Credentials {
    /** What takes every name, or every name that begins with `pass.`. */
    private static final List<String> PROVIDERS = List.of("org.apache.pulsar.broker.auth.MockAuthenticationProvider",
            "org.apache.pulsar.client.api.AuthorizationProducerConsumerTest$TestAuthenticationProvider",
            "org.apache.pulsar.client.impl.PatternTopicsConsumerImplAuthTest$TestAuthenticationProvider");
    private static final String[] CLIENTS = {"org.apache.pulsar.broker.auth.MockAuthentication",
            "org.apache.pulsar.client.api.AuthorizationProducerConsumerTest$ClientAuthentication",
            "org.apache.pulsar.client.impl.PatternTopicsConsumerImplAuthTest$ClientAuthentication"};
    private static final SecretKey KEY = Keys.secretKeyFor(SignatureAlgorithm.HS256);

    static AgentBuilder replaced(AgentBuilder agent) {
        return agent.type(ElementMatchers.namedOneOf(CLIENTS))
                .transform((builder, type, loader, module, domain) -> builder
                        .visit(Advice.to(Method.class).on(ElementMatchers.named("getAuthMethodName")))
                        .visit(Advice.to(Data.class).on(ElementMatchers.named("getAuthData").and(ElementMatchers.takesNoArguments()))));
    }

    /** Names the provider of tokens in the place of a test's own. */
    static void convert(Map<String, String> settings) {
        String providers = settings.getOrDefault("authenticationProviders", "");
        if (Arrays.stream(providers.split(",")).anyMatch(PROVIDERS::contains)) {
            settings.put("authenticationProviders", Arrays.stream(providers.split(","))
                    .map(name -> PROVIDERS.contains(name) ? AuthenticationProviderToken.class.getName() : name)
                    .collect(Collectors.joining(",")));
            settings.put("tokenSecretKey", AuthTokenUtils.encodeKeyBase64(KEY));
        }
    }

    public static Object data(String user) {
        return new AuthenticationDataToken(() -> token(user));
    }

    /** A token of this name; none that holds for a name that a test's provider refuses. */
    private static String token(String user) {
        boolean refused = user == null || user.startsWith("fail.") || user.startsWith("error.");
        return refused ? "refused" : Jwts.builder().setSubject(user).signWith(KEY).compact();
    }

    /** In the place of getAuthMethodName. */
    public static class Method {
        @Advice.OnMethodExit
        static void exit(@Advice.Return(readOnly = false) String name) {
            name = "token";
        }
    }

    /** In the place of getAuthData. */
    public static class Data {
        @Advice.OnMethodExit
        static void exit(@Advice.FieldValue("user") String user,
                         @Advice.Return(readOnly = false, typing = Assigner.Typing.DYNAMIC) Object data) {
            data = Credentials.data(user);
        }
    }
}
