"""Producers, consumers and readers over WebSocket, on a real broker."""
