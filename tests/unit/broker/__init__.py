"""Tests of :mod:`magnetar.broker` that need no socket."""
