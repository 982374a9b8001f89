"""Which cluster a client uses, and what may have it move to another one.

In reading order:

* ``service_info``          one cluster, as applications name it
* ``service_info_provider`` an application's own say about the cluster
* ``auto_cluster_failover`` a primary cluster, and others for when it is away
* ``cluster_watch``         looks which of them are there, from time to time
* ``service_switch``        holds the one that is used now
* ``client_connections``    the connections of a client to it
"""
