"""Commands of magnetar admin, judged by what pulsar-admin sends and prints."""
