"""How the client finds a topic's broker and stays connected to it.

In reading order:

* ``wire_connection`` one socket: requests and answers, keep-alive, credentials, and who gets which push
* ``connection_pool`` the connections of one client, by broker
* ``service``         one cluster as a client reaches it, which may change
* ``topic_lookup``    which broker serves a topic, how many partitions it has, which topics there are
* ``rest_questions``  the same questions by REST, for a service URL of http or https
* ``internal_topics`` the partitions of what applications name
* ``attachment``      keeps a producer or consumer attached to the broker that serves its topic
"""
