"""Model of an Azure Data Lake Storage Gen2 account."""
