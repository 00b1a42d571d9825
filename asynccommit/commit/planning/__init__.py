"""Plans of commits by renames: read, checked, or refused."""
