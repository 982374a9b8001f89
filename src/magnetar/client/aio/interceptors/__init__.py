"""What an application puts between itself and a producer, consumer or reader (rule 6.1.5).

In reading order:

* ``interceptor_calls``    calls into interceptors, whose errors are logged and go no further
* ``producer_interceptor`` what hears of messages on their way out
* ``consumer_interceptor`` what hears of messages on their way in, and of their acknowledgements
* ``intercepted_producer`` a producer with interceptors
* ``intercepted_consumer`` a consumer with interceptors; a reader stands on one, too
* ``trace_spans``          spans of OpenTelemetry, with the trace context in the messages

A producer or consumer without interceptors is of another class, and pays nothing for them.
"""
