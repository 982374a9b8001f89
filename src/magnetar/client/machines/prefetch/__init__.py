"""How many messages the broker may send, and what becomes of those for which there is no room.

* ``permits``         of one topic
* ``resent_entries``  what comes again although the application has it
* ``prefetch_budget`` of all topics of a consumer without queues
"""
