"""Servers on loopback that answer as the real stores do: wire formats over ``asynccommit.sim``."""
