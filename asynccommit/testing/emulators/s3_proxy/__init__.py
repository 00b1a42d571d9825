"""Proxy in front of an S3 server that adds faults and latency."""
