"""Commits that publish files by renaming them."""
