"""Records of partitioned topics such as no administrator can make: older versions and crashes left them."""

from __future__ import annotations

from magnetar.metadata.partitioned import PartitionedTopics, _key, _to_json
from magnetar.model.names import TopicName
from magnetar.model.policies import PartitionedTopic


async def left_behind(partitioned: PartitionedTopics, topic: TopicName, value: PartitionedTopic) -> None:
    """Write it, with none of its partitions made."""
    await partitioned._records.put(_key(topic), _to_json(topic, value, 0))
