"""What applications consume and read with.

In reading order:

* ``ready_messages`` messages that have come, and who waits for them
* ``letter_producer`` what publishes on a retry letter or dead letter topic, for each schema of the originals
* ``original``        the message that a letter is a copy of
* ``dead_letters``    messages on their way to a dead letter topic
* ``retry_letters``   copies that come later
* ``letter_topics``   which topics those are
* ``letters``         both, of one consumer
* ``settlement``      what an application says about messages
* ``prefetch``      permits of all topics together, where they have no queues
* ``consumer``      one of ``topics.topic_consumer`` for each partition or matching topic
* ``seek_position`` the place that a seek names
* ``table_receiver`` tables that a consumer receives and acknowledges
* ``topic_pattern`` topics that a pattern matches
* ``topic_discovery`` which internal topics a consumer has now, and how it follows them
* ``reader``        a consumer that leaves no trace
"""
