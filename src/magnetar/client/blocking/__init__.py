"""The blocking client: what threads call, over the asyncio client on one loop thread for each client.

In reading order:

* ``loop_thread``  the thread with the event loop: calls that wait, and calls that are only handed over
* ``send_queue``   what threads have sent and the loop has not taken yet
* ``hand_over``    messages on their way from the loop to threads
* ``listener_pool`` the threads that call listeners
* ``loggers``      where log lines go
* ``transaction``  messages and acknowledgements that count together
* ``producer``     what applications publish with
* ``consumer``     what applications consume with
* ``reader``       what applications read with
* ``table_view``   the last value of each key
* ``client``       what opens all of them (``magnetar.Client`` is its public name)

A class here has the name of its asyncio twin, and its methods and parameters, without ``await``
(`tests/unit/client/blocking` holds that).
"""
