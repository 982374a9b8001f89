"""Tests of :mod:`magnetar.security`."""
