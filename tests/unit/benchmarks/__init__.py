"""Tests of the load generator, without any broker."""
