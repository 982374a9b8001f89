"""Simulator and fakes, shipped: virtual time, faulty files, faulty network, a whole broker in memory."""
