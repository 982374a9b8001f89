"""Limits of rates in virtual time."""
