"""A model of Google Cloud Storage, in memory: buckets, objects, folders and what they refuse."""
