package interop;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.protobuf.Api;
import java.nio.ByteBuffer;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.util.Collection;
import java.util.Date;
import java.util.List;
import java.util.Map;
import org.apache.avro.generic.IndexedRecord;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.schema.GenericObject;
import org.apache.pulsar.common.schema.KeyValue;
import org.apache.pulsar.common.schema.KeyValueEncodingType;

/** Schemas by the names of tests/interop/encodings.py, and their values as JSON. */
final class Values {
    @SuppressWarnings({"unchecked", "rawtypes"})
    static Schema<Object> schema(JsonNode asked, boolean producing) {
        return (Schema) (asked.isObject() ? named(asked.get("kind").asText(), producing) : Schema.BYTES);
    }

    static Schema<?> named(String kind, boolean producing) {
        switch (kind) {
            case "auto":
                return producing ? Schema.AUTO_PRODUCE_BYTES() : Schema.AUTO_CONSUME();
            case "bytes":
                return Schema.BYTES;
            case "string":
                return Schema.STRING;
            case "boolean":
                return Schema.BOOL;
            case "int8":
                return Schema.INT8;
            case "int16":
                return Schema.INT16;
            case "int32":
                return Schema.INT32;
            case "int64":
                return Schema.INT64;
            case "float":
                return Schema.FLOAT;
            case "double":
                return Schema.DOUBLE;
            case "date":
                return Schema.DATE;
            case "time":
                return Schema.TIME;
            case "timestamp":
                return Schema.TIMESTAMP;
            case "instant":
                return Schema.INSTANT;
            case "local_date":
                return Schema.LOCAL_DATE;
            case "local_time":
                return Schema.LOCAL_TIME;
            case "local_date_time":
                return Schema.LOCAL_DATE_TIME;
            case "json":
                return Schema.JSON(Order.class);
            case "avro":
                return Schema.AVRO(Order.class);
            case "protobuf":
                return Schema.PROTOBUF(Api.class);
            case "protobuf_native":
                return Schema.PROTOBUF_NATIVE(Api.class);
            case "pair_inline":
                return Schema.KeyValue(Schema.STRING, Schema.AVRO(Order.class), KeyValueEncodingType.INLINE);
            case "pair_separated":
                return Schema.KeyValue(Schema.STRING, Schema.JSON(Order.class), KeyValueEncodingType.SEPARATED);
            default:
                throw new IllegalArgumentException(kind);
        }
    }

    static Object of(JsonNode schema, JsonNode message) throws Exception {
        if (!schema.isObject() || schema.get("kind").asText().equals("auto")) {
            return Peer.bytes(message.get("data"));
        }
        return of(schema.get("kind").asText(), message.get("value"));
    }

    static Object of(String kind, JsonNode value) throws Exception {
        switch (kind) {
            case "bytes":
                return Peer.bytes(value);
            case "string":
                return value.asText();
            case "boolean":
                return value.asBoolean();
            case "int8":
                return (byte) value.asInt();
            case "int16":
                return (short) value.asInt();
            case "int32":
                return value.asInt();
            case "int64":
                return value.asLong();
            case "float":
                return (float) value.asDouble();
            case "double":
                return value.asDouble();
            case "date":
                return new Date(value.asLong());
            case "time":
                return new java.sql.Time(value.asLong());
            case "timestamp":
                return new java.sql.Timestamp(value.asLong());
            case "instant":
                return Instant.ofEpochSecond(value.get(0).asLong(), value.get(1).asLong());
            case "local_date":
                return LocalDate.ofEpochDay(value.asLong());
            case "local_time":
                return LocalTime.ofNanoOfDay(value.asLong());
            case "local_date_time":
                return LocalDateTime.of(
                        LocalDate.ofEpochDay(value.get(0).asLong()), LocalTime.ofNanoOfDay(value.get(1).asLong()));
            case "json":
            case "avro":
                return Peer.JSON.treeToValue(value, Order.class);
            case "protobuf":
            case "protobuf_native":
                return Api.parseFrom(Peer.bytes(value));
            case "pair_inline":
            case "pair_separated":
                return new KeyValue<>(value.get("key").asText(), of("json", value.get("value")));
            default:
                throw new IllegalArgumentException(kind);
        }
    }

    static JsonNode plain(Object value) {
        JsonNodeFactory make = JsonNodeFactory.instance;
        if (value == null) {
            return make.nullNode();
        } else if (value instanceof GenericObject generic) {
            return plain(generic.getNativeObject());
        } else if (value instanceof JsonNode node) {
            return node;
        } else if (value instanceof Order order) {
            return Peer.JSON.valueToTree(order);
        } else if (value instanceof KeyValue<?, ?> pair) {
            ObjectNode both = make.objectNode();
            both.set("key", plain(pair.getKey()));
            both.set("value", plain(pair.getValue()));
            return both;
        } else if (value instanceof IndexedRecord record) {
            ObjectNode fields = make.objectNode();
            record.getSchema().getFields().forEach(field -> fields.set(field.name(), plain(record.get(field.pos()))));
            return fields;
        } else if (value instanceof Map<?, ?> map) {
            ObjectNode entries = make.objectNode();
            map.forEach((name, one) -> entries.set(name.toString(), plain(one)));
            return entries;
        } else if (value instanceof Collection<?> several) {
            ArrayNode array = make.arrayNode();
            several.forEach(one -> array.add(plain(one)));
            return array;
        } else if (value instanceof com.google.protobuf.Message message) {
            return make.textNode(Peer.text(message.toByteArray()));
        } else if (value instanceof byte[] bytes) {
            return make.textNode(Peer.text(bytes));
        } else if (value instanceof ByteBuffer buffer) {
            byte[] bytes = new byte[buffer.remaining()];
            buffer.duplicate().get(bytes);
            return make.textNode(Peer.text(bytes));
        } else if (value instanceof Boolean flag) {
            return make.booleanNode(flag);
        } else if (value instanceof Float || value instanceof Double) {
            return make.numberNode(((Number) value).doubleValue());
        } else if (value instanceof Number number) {
            return make.numberNode(number.longValue());
        } else if (value instanceof Date date) {
            return make.numberNode(date.getTime());
        } else if (value instanceof Instant instant) {
            return pair(instant.getEpochSecond(), instant.getNano());
        } else if (value instanceof LocalDate date) {
            return make.numberNode(date.toEpochDay());
        } else if (value instanceof LocalTime time) {
            return make.numberNode(time.toNanoOfDay());
        } else if (value instanceof LocalDateTime both) {
            return pair(both.toLocalDate().toEpochDay(), both.toLocalTime().toNanoOfDay());
        }
        return make.textNode(value.toString());
    }

    private static JsonNode pair(long first, long second) {
        return JsonNodeFactory.instance.arrayNode().add(first).add(second);
    }

    private Values() {}
}

/** The record of the matrix; every client declares it in its own way. */
class Order {
    public int number;
    public String customer;
    public double price;
    public boolean paid;
    public long placed;
    public List<String> lines;
    public Map<String, Long> stock;
    public Item item;
    public Colour colour;
}

/** A record within a record. */
class Item {
    public String sku;
    public int count;
}

/** An enumeration. */
enum Colour { RED, BLUE }
