"""Servers on loopback that speak the stores' protocols, over ``asynccommit.testing.models``."""
