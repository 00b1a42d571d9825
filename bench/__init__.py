"""Measurements against Hadoop's committers and against the machine: ``python -m bench``."""
