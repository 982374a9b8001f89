"""Tests of :mod:`magnetar.cli`."""
