"""Spark's streaming sink log: read, write, verify and repair it."""
