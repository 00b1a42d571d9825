"""Heartbeats of drivers, and the files by which they find one another."""
