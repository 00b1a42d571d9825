"""Azure Data Lake Storage Gen2 and flat Azure Blob Storage."""
