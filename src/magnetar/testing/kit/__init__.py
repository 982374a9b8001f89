"""The test kit: a real broker in the process of a test, which moves its time, causes its accidents
and reads its content.

Users have its names from :mod:`magnetar.testing` (docs/testing.md).

Reading order:

* ``pulsar_broker``       what a test makes
* ``call_arguments``      what its calls take
* ``virtual_loop``        event loops on real sockets whose time can be skipped
* ``rest_detector``       waits until all of them are at rest
* ``broker_thread``       the thread of a broker, and the ways into it
* ``virtual_clock``       moves the time, and warns of clients whose time stays
* ``frame_cutter``        frames of commands out of the bytes of a socket
* ``fault``               which frames a fault meets, and what it does to them
* ``faulty_connection``   where that happens, between a socket and the broker
* ``embedded_broker``     the broker itself: booted, killed, booted again
* ``broker_faults``       the accidents that a test can call
* ``stored_content``      reads topics without a subscription
* ``topic_inspection``    what a test asks of a topic
* ``message_explanation`` why a message was delivered or not
* ``pytest_plugin``       fixtures of pytest, and seeds of tests that fail
"""
