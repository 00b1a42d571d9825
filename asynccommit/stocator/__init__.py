"""Stocator: resolve which files of its tables belong to committed tasks."""
