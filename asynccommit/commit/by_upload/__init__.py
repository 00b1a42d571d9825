"""Commits that publish files by completing multipart uploads."""
