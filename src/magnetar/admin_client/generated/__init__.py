"""The groups of operations, made from magnetar.admin_api by ``python -m tools.admin_groups``: change nothing here.

Reading order: ``blocking_groups``, ``asyncio_groups``.
"""
