package org.apache.pulsar.broker.stats.prometheus;

import com.google.common.collect.ArrayListMultimap;
import com.google.common.collect.Multimap;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.commons.lang3.tuple.Pair;

/** A reader of metrics in Prometheus' text format, by the name that the tests call it: their published archive lacks it. */
public class PrometheusMetricsClient {
    private static final Pattern LINE = Pattern.compile("([a-zA-Z_:][\\w:]*)\\{(.*)} (\\S+)( \\d+)?");
    private static final Pattern LABEL = Pattern.compile("(\\w+)=\"((?:[^\"\\\\]|\\\\.)*)\"");

    private final String url;

    public PrometheusMetricsClient(String host, int port) {
        url = "http://" + host + ":" + port + "/metrics/";
    }

    public Metrics getMetrics() {
        return new Metrics(parseMetrics(text(url)));
    }

    /** What a broker answers at an address, following its redirections. */
    public static String text(String url) {
        HttpClient client = HttpClient.newBuilder().followRedirects(HttpClient.Redirect.NORMAL).build();
        try {
            HttpResponse<String> response =
                    client.send(HttpRequest.newBuilder(URI.create(url)).build(), HttpResponse.BodyHandlers.ofString());
            if (response.statusCode() != 200) {
                throw new AssertionError(url + ": " + response.statusCode() + " " + response.body());
            }
            return response.body();
        } catch (IOException | InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    public static Multimap<String, Metric> parseMetrics(String text) {
        Multimap<String, Metric> metrics = ArrayListMultimap.create();
        for (String line : text.split("\n")) {
            if (line.isEmpty() || line.startsWith("#")) {
                continue;
            }
            Matcher parts = LINE.matcher(line);
            if (!parts.matches()) {
                throw new AssertionError("not a metric: " + line);
            }
            Metric metric = new Metric();
            metric.value = parts.group(3).endsWith("Inf")
                    ? Double.parseDouble(parts.group(3).replace("Inf", "Infinity")) : Double.parseDouble(parts.group(3));
            Matcher labels = LABEL.matcher(parts.group(2));
            while (labels.find()) {
                metric.tags.put(labels.group(1), labels.group(2).replaceAll("\\\\(.)", "$1"));
            }
            metrics.put(parts.group(1), metric);
        }
        return metrics;
    }

    /** One value with its labels. */
    public static class Metric {
        public Map<String, String> tags = new TreeMap<>();
        public double value;

        public boolean contains(String label, String text) {
            return text.equals(tags.get(label));
        }

        @Override
        public String toString() {
            return "Metric{tags=" + tags + ", value=" + value + "}";
        }
    }

    /** All values of one answer. */
    public static class Metrics {
        private final Multimap<String, Metric> all;

        public Metrics(Multimap<String, Metric> all) {
            this.all = all;
        }

        public List<Metric> findByNameAndLabels(String name, String label, String text) {
            return findByNameAndLabels(name, Pair.of(label, text));
        }

        @SafeVarargs
        public final List<Metric> findByNameAndLabels(String name, Pair<String, String>... labels) {
            return all.get(name).stream()
                    .filter(metric -> Arrays.stream(labels).allMatch(label -> metric.contains(label.getLeft(), label.getRight())))
                    .toList();
        }

        @SafeVarargs
        public final Metric findSingleMetricByNameAndLabels(String name, Pair<String, String>... labels) {
            List<Metric> found = findByNameAndLabels(name, labels);
            if (found.size() != 1) {
                throw new AssertionError("one metric " + name + " was expected, there are " + found + " of " + all.get(name));
            }
            return found.get(0);
        }
    }
}
