"""What applications publish with.

* ``producer`` one of ``topics.topic_producer`` for each partition
* ``table_sender`` tables that a producer sends
"""
