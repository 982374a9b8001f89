"""The typed admin client: ``from magnetar import Admin, AsyncAdmin`` (docs/admin-client.md, decision 038).

Reading order: ``errors``, ``request`` (what is sent and what an answer means), ``blocking_transport`` and
``asyncio_transport``, ``generated`` (a package: the groups, made by ``python -m tools.admin_groups``), ``client``.
"""
