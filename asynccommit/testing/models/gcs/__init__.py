"""Model of Google Cloud Storage: buckets, objects, folders and refusals."""
