import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;
import org.apache.pulsar.broker.service.Consumer;
import org.apache.pulsar.broker.service.ConsumerHashAssignmentsSnapshot;
import org.apache.pulsar.broker.service.ImpactedConsumersResult;
import org.apache.pulsar.broker.service.StickyKeyConsumerSelector;
import org.apache.pulsar.client.admin.PulsarAdminException;
import org.apache.pulsar.client.api.Range;
import org.apache.pulsar.common.policies.data.stats.ConsumerStatsImpl;

/** Which consumer of a Key_Shared subscription has which hashes, as the REST interface shows them. */
class MirroredSelector implements StickyKeyConsumerSelector {
    /** What tells its consumers of now. */
    interface Shown {
        List<? extends ConsumerStatsImpl> consumers() throws PulsarAdminException;
    }

    private final Shown shown;
    private final boolean sticky;
    private final Function<String, Consumer> byName;

    MirroredSelector(Shown shown, boolean sticky, Function<String, Consumer> byName) {
        this.shown = shown;
        this.sticky = sticky;
        this.byName = byName;
    }

    @Override
    public Consumer select(int hash) {
        for (Map.Entry<Consumer, List<Range>> each : getConsumerKeyHashRanges().entrySet()) {
            if (each.getValue().stream().anyMatch(range -> range.contains(hash))) {
                return each.getKey();
            }
        }
        return null;
    }

    @Override
    public Range getKeyHashRange() {
        return Range.of(sticky ? 0 : STICKY_KEY_HASH_NOT_SET + 1, DEFAULT_RANGE_SIZE - 1);
    }

    @Override
    public Map<Consumer, List<Range>> getConsumerKeyHashRanges() {
        Map<Consumer, List<Range>> found = new LinkedHashMap<>();
        try {
            for (ConsumerStatsImpl consumer : shown.consumers()) {
                List<Range> ranges = new ArrayList<>();
                for (int[] range : consumer.getKeyHashRangeArrays()) {
                    ranges.add(Range.of(range[0], range[1]));
                }
                found.put(byName.apply(consumer.getConsumerName()), ranges);
            }
        } catch (PulsarAdminException e) {
            throw new IllegalStateException(e);
        }
        return found;
    }

    @Override
    public CompletableFuture<Optional<ImpactedConsumersResult>> addConsumer(Consumer consumer) {
        throw Inside.skip("StickyKeyConsumerSelector.addConsumer");
    }

    @Override
    public Optional<ImpactedConsumersResult> removeConsumer(Consumer consumer) {
        throw Inside.skip("StickyKeyConsumerSelector.removeConsumer");
    }

    @Override
    public ConsumerHashAssignmentsSnapshot getConsumerHashAssignmentsSnapshot() {
        throw Inside.skip("StickyKeyConsumerSelector.getConsumerHashAssignmentsSnapshot");
    }
}
