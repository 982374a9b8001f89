"""What several tests share: clients, data and places, none of them a test itself."""
