"""A model of buckets as S3 has them, and stores upon it."""
