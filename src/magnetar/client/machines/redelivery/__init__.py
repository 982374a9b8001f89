"""When a message comes again, how often, and what is sent where it does not (rules of 6.2 to 6.5).

In reading order:

* ``redelivery_backoff``  how long a message waits, by how often it has come already
* ``due_entries``         entries by the time at which something is due for them
* ``negative_acks``       negative acknowledgements that wait for their time
* ``ack_timeouts``        what the application has had for too long
* ``dead_letter_policy``  after how many redeliveries a message goes where, and what it waits on
* ``last_deliveries``     entries that do not come again: what is refused of them goes to the dead letter topic
* ``redeliveries``        all of these for one consumer
* ``letters``             the copy of a message on a retry letter or dead letter topic
"""

from __future__ import annotations
