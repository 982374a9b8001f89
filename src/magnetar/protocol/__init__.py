"""What travels on the wire: bytes <-> typed commands, for both roles. Pure: no I/O, no clock, no chance."""
