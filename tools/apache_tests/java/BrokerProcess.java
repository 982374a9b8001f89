import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.HttpURLConnection;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;
import org.testng.SkipException;

/** A process of `magnetar standalone` with the settings of a ServiceConfiguration. */
public class BrokerProcess {
    private static final long START_MS_MAX = 120_000;
    private static final long END_S_MAX = 20;
    /** Over which the process averages rates, if the test does not say. */
    private static final int RATES_S = 2;
    private static final List<BrokerProcess> ALL = new CopyOnWriteArrayList<>();
    private static final Set<Integer> PORTS = ConcurrentHashMap.newKeySet();

    static {
        Runtime.getRuntime().addShutdownHook(new Thread(() -> ALL.forEach(broker -> broker.process.destroyForcibly())));
    }

    final Path data;
    final int port;
    final int portTls;
    final int http;
    final int https;
    final boolean tls;
    final ServiceConfiguration conf;
    /** The settings that the process has. */
    private Map<String, String> settings;
    /** Names of settings that it was not started with, but got over REST: they stay over a start. */
    private final Set<String> overRest;
    /** Names of settings that it could not take over. */
    private final Set<String> refused = new HashSet<>();
    private volatile boolean behind;
    private volatile Process process;
    private PulsarAdmin admin;
    private PulsarClient client;

    /**
     * Starts it with the data and the ports of `before`, or, if that is null, on a new directory without the tenant "public":
     * the tests create it.
     */
    BrokerProcess(ServiceConfiguration conf, BrokerProcess before) throws Exception {
        this.conf = conf;
        this.data = before != null ? before.data : Files.createTempDirectory("broker").resolve("data");
        this.port = before != null ? before.port : free();
        this.portTls = before != null ? before.portTls : free();
        this.http = before != null ? before.http : free();
        this.https = before != null ? before.https : free();
        this.overRest = before != null ? before.overRest : new HashSet<>();
        this.tls = !Objects.toString(conf.getTlsCertificateFilePath(), "").isEmpty() || conf.isTlsEnabledWithKeyStore();
        start(Settings.of(conf));
        ALL.add(this);
        if (before == null) {
            withoutPublic();
        }
    }

    private void start(Map<String, String> wanted) throws Exception {
        settings = wanted;
        Map<String, String> written = new TreeMap<>(wanted);
        KeyStores.convert(written, data.getParent());
        Credentials.convert(written);
        List<String> lines = new ArrayList<>();
        written.forEach((name, value) -> lines.add(name + "=" + value));
        lines.add("brokerServicePort=" + port);
        lines.add("webServicePort=" + http);
        lines.add("advertisedAddress=" + host());
        // what a test leaves behind is deleted by force, which its own broker does not ask to be allowed
        lines.add("forceDeleteNamespaceAllowed=true");
        lines.add("forceDeleteTenantAllowed=true");
        // tests ask their own broker for metrics with and without them
        lines.add("exposeConsumerLevelMetricsInPrometheus=true");
        lines.add("exposeProducerLevelMetricsInPrometheus=true");
        if (!wanted.containsKey("statsUpdateFrequencyInSecs")) {
            lines.add("statsUpdateFrequencyInSecs=" + RATES_S);
        }
        if (tls) {
            lines.add("brokerServicePortTls=" + portTls);
            lines.add("webServicePortTls=" + https);
        }
        Path file = Files.write(data.resolveSibling("broker.conf"), lines);
        File log = data.resolveSibling("broker.log").toFile();
        List<String> command = new ArrayList<>(List.of(System.getProperty("magnetar").split("\n")));
        command.addAll(List.of("standalone", "--data", data.toString(), "--conf", file.toString()));
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.appendTo(log));
        String passwords = System.getProperty("pulsar.auth.basic.conf");
        if (passwords != null) {
            builder.environment().put("PULSAR_EXTRA_OPTS", "-Dpulsar.auth.basic.conf=" + passwords);
        }
        process = builder.start();
        long end = System.currentTimeMillis() + START_MS_MAX;
        while (!listens(port) || !listens(http)) {
            if (!process.isAlive() || System.currentTimeMillis() > end) {
                process.destroyForcibly();
                String said = Files.readString(log.toPath());
                throw new SkipException("REFUSED " + said.substring(Math.max(0, said.length() - 500)) + " with " + lines);
            }
            Thread.sleep(50);
        }
        System.err.println("broker " + process.pid() + " on " + data + " with " + lines);
        for (String name : Set.copyOf(overRest)) {
            overRest("DELETE", name, Optional.empty());
        }
    }

    String host() {
        return Objects.requireNonNullElse(conf.getAdvertisedAddress(), "localhost");
    }

    String webAddress() {
        return "http://" + host() + ":" + http;
    }

    String webAddressTls() {
        return tls ? "https://" + host() + ":" + https : null;
    }

    String address() {
        return "pulsar://" + host() + ":" + port;
    }

    String addressTls() {
        return tls ? "pulsar+ssl://" + host() + ":" + portTls : null;
    }

    /** An admin client that is who the broker itself is. */
    synchronized PulsarAdmin admin() {
        try {
            if (admin == null) {
                boolean overTls = tls && conf.isBrokerClientTlsEnabled();
                admin = PulsarAdmin.builder().serviceHttpUrl(overTls ? webAddressTls() : webAddress())
                        .tlsTrustCertsFilePath(conf.getBrokerClientTrustCertsFilePath())
                        .useKeyStoreTls(conf.isBrokerClientTlsEnabledWithKeyStore())
                        .tlsTrustStorePath(conf.getBrokerClientTlsTrustStore())
                        .tlsTrustStorePassword(conf.getBrokerClientTlsTrustStorePassword()).authentication(
                                conf.getBrokerClientAuthenticationPlugin(), conf.getBrokerClientAuthenticationParameters()).build();
            }
            return admin;
        } catch (PulsarClientException e) {
            throw new IllegalStateException(e);
        }
    }

    /** A client that is who the broker itself is. */
    synchronized PulsarClient client() {
        try {
            if (client == null) {
                boolean overTls = tls && conf.isBrokerClientTlsEnabled();
                client = PulsarClient.builder().serviceUrl(overTls ? addressTls() : address())
                        .tlsTrustCertsFilePath(conf.getBrokerClientTrustCertsFilePath())
                        .useKeyStoreTls(conf.isBrokerClientTlsEnabledWithKeyStore())
                        .tlsTrustStorePath(conf.getBrokerClientTlsTrustStore())
                        .tlsTrustStorePassword(conf.getBrokerClientTlsTrustStorePassword()).authentication(
                                conf.getBrokerClientAuthenticationPlugin(), conf.getBrokerClientAuthenticationParameters()).build();
            }
            return client;
        } catch (PulsarClientException e) {
            throw new IllegalStateException(e);
        }
    }

    private void withoutPublic() {
        try {
            PulsarAdmin admin = admin();
            for (String namespace : admin.namespaces().getNamespaces("public")) {
                admin.namespaces().deleteNamespace(namespace);
            }
            admin.tenants().deleteTenant("public");
        } catch (Exception e) {
            System.err.println("the tenant public stays: " + e);
        }
    }

    /** Waits until the process has measured its rates over what the test has done just now. */
    void measured() throws InterruptedException {
        Inside.skip("rates of now"); // the moment is that of the process
        Thread.sleep(RATES_S * 1000 + 200);
    }

    boolean alive() {
        return process.isAlive();
    }

    /** Ends it, and says so if it does not end by itself. */
    void end() {
        ALL.remove(this);
        if (admin != null) {
            admin.close();
        }
        if (client != null) {
            client.closeAsync();
        }
        stop();
    }

    private void stop() {
        process.destroy();
        try {
            if (!process.waitFor(END_S_MAX, TimeUnit.SECONDS)) {
                System.err.println("the broker did not end within " + END_S_MAX + " s");
                process.destroyForcibly().waitFor();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** Remembers that the test has set something in a configuration. */
    public static void set(Object conf) {
        for (BrokerProcess broker : ALL) {
            broker.behind |= broker.conf == conf;
        }
    }

    /** Writes what the processes took over into the tests' configurations. */
    public static void took(String name, String value) {
        for (BrokerProcess broker : ALL) {
            boolean behind = broker.behind;
            if (Settings.write(broker.conf, name, value)) {
                broker.settings = Settings.of(broker.conf);
            }
            broker.behind = behind;
        }
    }

    /** Brings what the test has set to the processes. */
    public static void follow() {
        for (BrokerProcess broker : ALL) {
            if (broker.behind) {
                broker.catchUp();
            }
        }
    }

    private synchronized void catchUp() {
        behind = false;
        Map<String, String> now = Settings.of(conf);
        Set<String> names = Settings.differing(settings, now);
        names.removeAll(refused);
        names.removeIf(name -> {
            Optional<String> value = Settings.dynamic(conf, name);
            return value.isPresent() && overRest("POST", name, value);
        });
        if (names.isEmpty() || !process.isAlive()) {
            settings = now;
            return;
        }
        Map<String, String> before = settings;
        try {
            stop();
            try {
                start(now);
            } catch (SkipException e) {
                System.err.println("not changed: " + names + " " + e.getMessage());
                refused.addAll(names);
                start(before);
            }
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    private boolean overRest(String method, String name, Optional<String> value) {
        try {
            String path = "/admin/v2/brokers/configuration/" + name
                    + value.map(text -> "/" + URLEncoder.encode(text, StandardCharsets.UTF_8).replace("+", "%20")).orElse("");
            HttpURLConnection request = (HttpURLConnection) URI.create(webAddress() + path).toURL().openConnection();
            request.setRequestMethod(method);
            int status = request.getResponseCode();
            System.err.println(method + " " + path + ": " + status);
            if (status / 100 == 2 && value.isPresent()) {
                overRest.add(name);
            } else if (status / 100 == 2) {
                overRest.remove(name);
            }
            return status / 100 == 2;
        } catch (IOException e) {
            System.err.println(method + " " + name + ": " + e);
            return false;
        }
    }

    /** What tests have changed in the configurations of living brokers and their processes did not take over. */
    static String changed() {
        StringBuilder text = new StringBuilder();
        for (BrokerProcess broker : ALL) {
            Map<String, String> now = Settings.of(broker.conf);
            Settings.differing(now, broker.settings).forEach(name -> text.append(' ').append(name).append('=').append(now.get(name)));
        }
        return text.toString();
    }

    private static boolean listens(int port) {
        try (Socket socket = new Socket("127.0.0.1", port)) {
            return true;
        } catch (IOException e) {
            return false;
        }
    }

    /** A port that nobody listens on and that no broker of this run has had: the system may name one twice in a row. */
    private static int free() {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"))) {
            return PORTS.add(socket.getLocalPort()) ? socket.getLocalPort() : free();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
