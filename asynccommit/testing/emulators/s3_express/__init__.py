"""Emulator of directory buckets of S3 Express One Zone."""
