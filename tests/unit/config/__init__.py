"""Tests of the settings: how they are read, listed, documented and refused."""
