"""Maintenance of topics as Spark batch jobs: ``magnetar jobs``."""
