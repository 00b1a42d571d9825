"""Flat Azure Blob Storage: accounts without a hierarchical namespace."""
