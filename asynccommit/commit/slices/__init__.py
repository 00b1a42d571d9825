"""Parts of a commit that other processes do."""
