import java.lang.reflect.Field;
import java.util.Collection;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.common.configuration.FieldContext;
import org.apache.pulsar.common.util.FieldParser;

/** The settings of a ServiceConfiguration as in a broker.conf. */
class Settings {
    /** Settings of the test's own process, of services that magnetar does not need, and those that every process has. */
    private static final Set<String> LEFT_OUT = Set.of("metadataStoreUrl", "configurationMetadataStoreUrl", "brokerServicePort",
            "brokerServicePortTls", "webServicePort", "webServicePortTls", "brokerShutdownTimeoutMs",
            "loadBalancerOverrideBrokerNicSpeedGbps", "bookkeeperClientExposeStatsToPrometheus",
            "numExecutorThreadPoolSize", "advertisedAddress", "bindAddress", "managedLedgerCacheSizeMB",
            "forceDeleteNamespaceAllowed", "forceDeleteTenantAllowed",
            "exposeConsumerLevelMetricsInPrometheus", "exposeProducerLevelMetricsInPrometheus");

    /** Those that differ from Apache Pulsar's defaults. */
    static Map<String, String> of(ServiceConfiguration conf) {
        Map<String, String> result = new TreeMap<>();
        ServiceConfiguration defaults = new ServiceConfiguration();
        try {
            for (Field field : ServiceConfiguration.class.getDeclaredFields()) {
                field.setAccessible(true);
                if (field.getAnnotation(FieldContext.class) != null && !LEFT_OUT.contains(field.getName())
                        && !Objects.equals(field.get(conf), field.get(defaults))) {
                    result.put(field.getName(), text(field.get(conf)));
                }
            }
        } catch (IllegalAccessException e) {
            throw new IllegalStateException(e);
        }
        conf.getProperties().forEach((name, value) -> result.put(String.valueOf(name), String.valueOf(value)));
        return result;
    }

    /** The names of the settings in which two configurations differ. */
    static Set<String> differing(Map<String, String> one, Map<String, String> other) {
        Set<String> names = new TreeSet<>(one.keySet());
        names.addAll(other.keySet());
        names.removeIf(name -> Objects.equals(one.get(name), other.get(name)));
        return names;
    }

    /** The value of a setting that a broker takes over while it runs; nothing for other settings. */
    static Optional<String> dynamic(ServiceConfiguration conf, String name) {
        try {
            Field field = ServiceConfiguration.class.getDeclaredField(name);
            FieldContext context = field.getAnnotation(FieldContext.class);
            field.setAccessible(true);
            return context != null && context.dynamic() ? Optional.of(text(field.get(conf))) : Optional.empty();
        } catch (ReflectiveOperationException e) {
            return Optional.empty();
        }
    }

    /** Writes a setting into a configuration, and says whether it has it. */
    static boolean write(ServiceConfiguration conf, String name, String value) {
        try {
            Field field = ServiceConfiguration.class.getDeclaredField(name);
            field.setAccessible(true);
            field.set(conf, FieldParser.value(value, field));
            return true;
        } catch (ReflectiveOperationException | IllegalArgumentException e) {
            return false;
        }
    }

    private static String text(Object value) {
        if (value instanceof Optional) {
            return ((Optional<?>) value).map(Settings::text).orElse("");
        }
        if (value instanceof Collection) {
            return ((Collection<?>) value).stream().map(Settings::text).collect(Collectors.joining(","));
        }
        if (value instanceof Map) {
            return ((Map<?, ?>) value).entrySet().stream().map(Object::toString).collect(Collectors.joining(","));
        }
        return Objects.toString(value, "");
    }
}
