"""The task side of the committers for multipart uploads."""
