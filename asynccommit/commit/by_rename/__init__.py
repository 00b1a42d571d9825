"""Commits that publish files by renaming them: one module for each step."""
