"""What the tasks of the committers for multipart uploads do."""
