import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.reflect.Field;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.common.configuration.FieldContext;
import org.testng.SkipException;

/** A process of `magnetar standalone` with the settings of a ServiceConfiguration. */
public class BrokerProcess {
    /** Settings of the test's own process and of services that magnetar does not need. */
    private static final Set<String> LEFT_OUT = Set.of("metadataStoreUrl", "configurationMetadataStoreUrl", "brokerServicePort",
            "brokerServicePortTls", "webServicePort", "webServicePortTls", "brokerShutdownTimeoutMs",
            "loadBalancerOverrideBrokerNicSpeedGbps", "bookkeeperClientExposeStatsToPrometheus",
            "numExecutorThreadPoolSize", "advertisedAddress", "bindAddress", "managedLedgerCacheSizeMB",
            "forceDeleteNamespaceAllowed", "forceDeleteTenantAllowed");
    private static final long START_MS_MAX = 120_000;
    private static final long END_S_MAX = 20;
    private static final List<BrokerProcess> ALL = new ArrayList<>();

    static {
        Runtime.getRuntime().addShutdownHook(new Thread(() -> ALL.forEach(broker -> broker.process.destroyForcibly())));
    }

    final Path data;
    final int port;
    final int portTls;
    final int http;
    final int https;
    final boolean tls;
    private final ServiceConfiguration conf;
    private final Map<String, String> atStart;
    private final Process process;

    /**
     * Starts it with the data and the ports of `before`, or, if that is null, on a new directory without the tenant "public":
     * the tests create it.
     */
    BrokerProcess(ServiceConfiguration conf, BrokerProcess before) throws Exception {
        this.conf = conf;
        this.atStart = settings(conf);
        this.data = before != null ? before.data : Files.createTempDirectory("broker").resolve("data");
        this.port = before != null ? before.port : free();
        this.portTls = before != null ? before.portTls : free();
        this.http = before != null ? before.http : free();
        this.https = before != null ? before.https : free();
        this.tls = !Objects.toString(conf.getTlsCertificateFilePath(), "").isEmpty() || conf.isTlsEnabledWithKeyStore();
        List<String> lines = new ArrayList<>();
        atStart.forEach((name, value) -> lines.add(name + "=" + value));
        lines.add("brokerServicePort=" + port);
        lines.add("webServicePort=" + http);
        lines.add("advertisedAddress=localhost");
        // what a test leaves behind is deleted by force, which its own broker does not ask to be allowed
        lines.add("forceDeleteNamespaceAllowed=true");
        lines.add("forceDeleteTenantAllowed=true");
        if (tls) {
            lines.add("brokerServicePortTls=" + portTls);
            lines.add("webServicePortTls=" + https);
        }
        Path file = Files.write(this.data.resolveSibling("broker.conf"), lines);
        File log = this.data.resolveSibling("broker.log").toFile();
        List<String> command = new ArrayList<>(List.of(System.getProperty("magnetar").split("\n")));
        command.addAll(List.of("standalone", "--data", this.data.toString(), "--conf", file.toString()));
        process = new ProcessBuilder(command).redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.appendTo(log)).start();
        ALL.add(this);
        long end = System.currentTimeMillis() + START_MS_MAX;
        while (!listens(port) || !listens(http)) {
            if (!process.isAlive() || System.currentTimeMillis() > end) {
                process.destroyForcibly();
                String said = Files.readString(log.toPath());
                throw new SkipException("REFUSED " + said.substring(Math.max(0, said.length() - 500)) + " with " + lines);
            }
            Thread.sleep(50);
        }
        System.err.println("broker " + process.pid() + " on " + this.data + " with " + lines);
        if (before == null) {
            withoutPublic();
        }
    }

    private void withoutPublic() {
        try (PulsarAdmin admin = PulsarAdmin.builder().serviceHttpUrl("http://localhost:" + http).build()) {
            for (String namespace : admin.namespaces().getNamespaces("public")) {
                admin.namespaces().deleteNamespace(namespace);
            }
            admin.tenants().deleteTenant("public");
        } catch (Exception e) {
            System.err.println("the tenant public stays: " + e);
        }
    }

    boolean alive() {
        return process.isAlive();
    }

    /** Ends it, and says so if it does not end by itself. */
    void end() {
        process.destroy();
        try {
            if (!process.waitFor(END_S_MAX, TimeUnit.SECONDS)) {
                System.err.println("the broker did not end within " + END_S_MAX + " s");
                process.destroyForcibly().waitFor();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        ALL.remove(this);
    }

    /** What tests have changed in the configurations of living brokers, which a process cannot see. */
    static String changed() {
        StringBuilder text = new StringBuilder();
        for (BrokerProcess broker : ALL) {
            Map<String, String> now = settings(broker.conf);
            Set<String> names = new TreeSet<>(now.keySet());
            names.addAll(broker.atStart.keySet());
            names.removeIf(name -> Objects.equals(now.get(name), broker.atStart.get(name)));
            names.forEach(name -> text.append(' ').append(name).append('=').append(now.get(name)));
        }
        return text.toString();
    }

    /** The settings that differ from Apache Pulsar's defaults, as in a broker.conf. */
    private static Map<String, String> settings(ServiceConfiguration conf) {
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
        Properties others = conf.getProperties();
        others.forEach((name, value) -> result.put(String.valueOf(name), String.valueOf(value)));
        return result;
    }

    private static String text(Object value) {
        if (value instanceof Optional) {
            return ((Optional<?>) value).map(BrokerProcess::text).orElse("");
        }
        if (value instanceof Collection) {
            return ((Collection<?>) value).stream().map(BrokerProcess::text).collect(Collectors.joining(","));
        }
        if (value instanceof Map) {
            return ((Map<?, ?>) value).entrySet().stream().map(Object::toString).collect(Collectors.joining(","));
        }
        return Objects.toString(value, "");
    }

    private static boolean listens(int port) {
        try (Socket socket = new Socket("127.0.0.1", port)) {
            return true;
        } catch (IOException e) {
            return false;
        }
    }

    private static int free() {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"))) {
            return socket.getLocalPort();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
