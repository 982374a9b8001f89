package interop;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.BatcherBuilder;
import org.apache.pulsar.client.api.CompressionType;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.ConsumerBuilder;
import org.apache.pulsar.client.api.DeadLetterPolicy;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.MessageIdAdv;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.ProducerBuilder;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.api.TypedMessageBuilder;
import org.apache.pulsar.client.api.transaction.Transaction;

/**
 * The Java client as one side of the interop matrix: a job a line on stdin, its answer a line on stdout.
 *
 * <p>What a job and an answer hold is said in tests/interop/encodings.py. The argument is the broker's address.
 */
public final class Peer {
    static final ObjectMapper JSON = new ObjectMapper();
    static final int PATIENCE_SECONDS = 20;
    static PulsarClient client;
    static final Map<String, Consumer<?>> HELD = new HashMap<>();

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        client = PulsarClient.builder().serviceUrl(arguments[0]).enableTransaction(true).build();
        BufferedReader jobs = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = jobs.readLine(); line != null; line = jobs.readLine()) {
            ObjectNode answer;
            try {
                answer = answer(JSON.readTree(line));
            } catch (Throwable error) {
                error.printStackTrace();
                answer = JSON.createObjectNode().put("error", String.valueOf(error));
            }
            answers.println(JSON.writeValueAsString(answer));
        }
        Runtime.getRuntime().halt(0);
    }

    static ObjectNode answer(JsonNode job) throws Exception {
        switch (job.get("do").asText()) {
            case "write":
                return write(job);
            case "read":
                return read(job);
            case "release":
                HELD.remove(job.get("subscription").asText()).close();
                return JSON.createObjectNode();
            default:
                throw new IllegalArgumentException(job.get("do").asText());
        }
    }

    static byte[] bytes(JsonNode node) {
        return Base64.getDecoder().decode(node.asText());
    }

    static String text(byte[] bytes) {
        return Base64.getEncoder().encodeToString(bytes);
    }

    static Transaction begin() throws Exception {
        return client.newTransaction().withTransactionTimeout(60, TimeUnit.SECONDS).build().get();
    }

    static void end(Transaction transaction, String how) throws Exception {
        (how.equals("commit") ? transaction.commit() : transaction.abort()).get();
    }

    static ObjectNode write(JsonNode job) throws Exception {
        JsonNode options = job.path("producer");
        JsonNode schema = job.path("schema");
        ProducerBuilder<Object> builder = client.newProducer(Values.schema(schema, true))
                .topic(job.get("topic").asText()).enableBatching(false).sendTimeout(0, TimeUnit.SECONDS)
                .producerName(options.get("name").asText());
        if (options.has("compression")) {
            builder.compressionType(CompressionType.valueOf(options.get("compression").asText()));
        }
        if (options.path("batching").asBoolean()) {
            builder.enableBatching(true).batchingMaxPublishDelay(200, TimeUnit.MILLISECONDS);
            if (options.path("by_key").asBoolean()) {
                builder.batcherBuilder(BatcherBuilder.KEY_BASED);
            }
        }
        if (options.path("chunking").asBoolean()) {
            builder.enableChunking(true);
        }
        if (options.has("public_key")) {
            builder.addEncryptionKey("k").defaultCryptoKeyReader("file://" + options.get("public_key").asText());
        }
        Transaction transaction = job.has("transaction") ? begin() : null;
        List<CompletableFuture<MessageId>> sent = new ArrayList<>();
        try (Producer<Object> producer = builder.create()) {
            for (JsonNode one : job.get("messages")) {
                TypedMessageBuilder<Object> message =
                        transaction == null ? producer.newMessage() : producer.newMessage(transaction);
                fill(message, one, schema);
                sent.add(message.sendAsync());
            }
            producer.flush();
            ObjectNode answer = JSON.createObjectNode();
            ArrayNode ids = answer.putArray("ids");
            for (CompletableFuture<MessageId> one : sent) {
                ids.add(id(one.get(PATIENCE_SECONDS, TimeUnit.SECONDS)));
            }
            if (transaction != null) {
                end(transaction, job.get("transaction").asText());
            }
            return answer;
        }
    }

    static void fill(TypedMessageBuilder<Object> message, JsonNode one, JsonNode schema) throws Exception {
        if (one.has("key")) {
            message.key(one.get("key").asText());
        }
        if (one.has("key_bytes")) {
            message.keyBytes(bytes(one.get("key_bytes")));
        }
        if (one.has("ordering_key")) {
            message.orderingKey(bytes(one.get("ordering_key")));
        }
        if (one.has("event_time")) {
            message.eventTime(one.get("event_time").asLong());
        }
        if (one.has("sequence_id")) {
            message.sequenceId(one.get("sequence_id").asLong());
        }
        if (one.has("deliver_after_ms")) {
            message.deliverAfter(one.get("deliver_after_ms").asLong(), TimeUnit.MILLISECONDS);
        }
        for (Map.Entry<String, JsonNode> property : one.path("properties").properties()) {
            message.property(property.getKey(), property.getValue().asText());
        }
        message.value(one.path("null").asBoolean() ? null : Values.of(schema, one));
    }

    static ObjectNode id(MessageId given) {
        MessageIdAdv id = (MessageIdAdv) given;
        ObjectNode shown = JSON.createObjectNode();
        shown.put("ledger", id.getLedgerId()).put("entry", id.getEntryId()).put("batch_index", id.getBatchIndex());
        return shown.put("bytes", text(given.toByteArray())).put("text", given.toString());
    }

    static ObjectNode read(JsonNode job) throws Exception {
        JsonNode options = job.path("consumer");
        String subscription = job.get("subscription").asText();
        ConsumerBuilder<Object> builder = client.newConsumer(Values.schema(job.path("schema"), false))
                .topic(job.get("topic").asText()).subscriptionName(subscription)
                .subscriptionType(SubscriptionType.valueOf(options.path("type").asText("Exclusive")))
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest)
                .acknowledgmentGroupTime(0, TimeUnit.SECONDS).enableBatchIndexAcknowledgment(true)
                .negativeAckRedeliveryDelay(100, TimeUnit.MILLISECONDS);
        if (options.has("private_key")) {
            builder.defaultCryptoKeyReader("file://" + options.get("private_key").asText());
        }
        if (options.has("max_redeliver_count")) {
            builder.deadLetterPolicy(DeadLetterPolicy.builder()
                    .maxRedeliverCount(options.get("max_redeliver_count").asInt())
                    .initialSubscriptionName("review").build());
        }
        builder.enableRetry(options.path("retry").asBoolean());
        Consumer<Object> consumer = builder.subscribe();
        try {
            ObjectNode answer = JSON.createObjectNode();
            ArrayNode messages = answer.putArray("messages");
            int count = job.get("count").asInt();
            Transaction transaction = job.has("transaction") ? begin() : null;
            for (int number = 0; number < count; number++) {
                Message<Object> message = consumer.receive(PATIENCE_SECONDS, TimeUnit.SECONDS);
                if (message == null) {
                    answer.put("error", "nothing came after " + number + " messages");
                    return answer;
                }
                messages.add(shown(message, job.path("schema")));
                settle(consumer, message, job, transaction);
            }
            if (transaction != null) {
                end(transaction, job.get("transaction").asText());
            }
            if (job.path("nothing_more").asBoolean()) {
                Message<Object> more = consumer.receive(300, TimeUnit.MILLISECONDS);
                if (more != null) {
                    answer.put("error", "one more message: " + more.getMessageId());
                }
            }
            return answer;
        } finally {
            if (job.path("hold").asBoolean()) {
                HELD.put(subscription, consumer);
            } else {
                consumer.close();
            }
        }
    }

    static void settle(Consumer<Object> consumer, Message<Object> message, JsonNode job, Transaction transaction)
            throws Exception {
        String how = job.path("then").asText("acknowledge");
        if (how.equals("refuse")) {
            consumer.negativeAcknowledge(message);
        } else if (how.equals("retry")) {
            long delay = job.get("delay_ms").asLong();
            Map<String, String> properties = new HashMap<>();
            for (Map.Entry<String, JsonNode> property : job.path("properties").properties()) {
                properties.put(property.getKey(), property.getValue().asText());
            }
            consumer.reconsumeLater(message, properties, delay, TimeUnit.MILLISECONDS);
        } else if (transaction != null) {
            consumer.acknowledgeAsync(message.getMessageId(), transaction).get();
        } else {
            consumer.acknowledge(message);
        }
    }

    static ObjectNode shown(Message<Object> message, JsonNode schema) throws Exception {
        ObjectNode one = JSON.createObjectNode();
        Object value = message.getValue();
        if (value == null) {
            one.put("null", true);
        } else {
            one.put("data", text(message.getData()));
            if (schema.isObject()) {
                one.set("value", Values.plain(value));
            }
        }
        if (message.hasKey()) {
            one.put("key_bytes", text(message.getKeyBytes()));
        }
        if (message.hasOrderingKey()) {
            one.put("ordering_key", text(message.getOrderingKey()));
        }
        ObjectNode properties = one.putObject("properties");
        message.getProperties().forEach(properties::put);
        one.put("event_time", message.getEventTime()).put("sequence_id", message.getSequenceId());
        one.put("producer", message.getProducerName()).put("topic", message.getTopicName());
        one.put("redeliveries", message.getRedeliveryCount());
        one.set("id", id(message.getMessageId()));
        return one;
    }

    private Peer() {}
}
