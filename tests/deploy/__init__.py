"""What is in deploy/: dashboards and alerts ask for what /metrics shows."""
