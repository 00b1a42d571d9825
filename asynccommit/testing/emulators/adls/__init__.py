"""Emulator of Azure Data Lake Storage Gen2 over HTTP."""
