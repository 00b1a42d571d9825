"""The job side of every committer."""
