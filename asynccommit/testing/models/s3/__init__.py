"""Model of S3 buckets, and stores over it."""
