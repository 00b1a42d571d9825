"""Changes of a commit by renames, and how they are undone."""
