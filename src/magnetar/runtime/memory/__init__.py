"""Freed memory goes back to the system.

Reading order: ``trim`` (when, and how), ``free_lists`` (what Python and its libraries keep of freed objects),
``balloon`` (free pages of arenas that stay).
"""
