"""Tests of magnetar.broker that need no socket."""
