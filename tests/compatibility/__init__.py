"""What earlier versions wrote and this one must read."""
