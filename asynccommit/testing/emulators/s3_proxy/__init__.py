"""A proxy before an S3 server that adds faults and latency."""
