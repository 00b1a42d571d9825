"""Servers on loopback that speak the protocols of the stores, over their models."""
